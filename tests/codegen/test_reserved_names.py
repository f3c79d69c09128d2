"""Names that mean something in C++, CUDA, HIP or the printed text: the code is clean all the same."""

from __future__ import annotations

import pytest

from tests.codegen.kernels import function
from tilelab.codegen.cuda import cuda_text
from tilelab.codegen.hip import hip_text
from tilelab.codegen.names import RESERVED, free_name, kernel_name
from tilelab.runtime.hip_build import build_hip
from tilelab.runtime.nvrtc import build_cuda

NASTY = (
    "v1", "v2", "v3", "l", "pool", "vec", "half", "DEV", "MEMBER", "asm", "typename", "nullptr", "decltype",
    "not_eq", "xor", "linux", "unix", "NULL", "warp", "warpgroup", "threadIdx", "blockIdx", "uint4",
    "i8", "u32", "w16", "u32x4", "f32x4", "printf", "expf", "exponential", "infinity", "load_words",
    "__syncthreads", "__shared__", "__builtin_assume", "__launch_bounds__", "__CUDA_ARCH__",
    "_Float16", "_Bool", "A_map", "A_map_1", "CUtensorMap", "alignas", "thread_local", "char8_t", "requires",
    "co_await", "é", "αβ",
)  # fmt: skip
KERNELS = (
    "main", "asm", "v1", "norm", "sin", "expf", "printf", "malloc", "memcpy", "atomicAdd", "clock",
    "__syncthreads", "DEV", "MEMBER", "vec", "sigmoid", "min_of", "linux", "isnan", "saturate",
    "round", "rsqrt", "copy", "y1", "exit", "free", "abs", "index", "float2half", "time", "log", "gamma",
)  # fmt: skip


AT = "[T.Ramp(tx * 8, 1, 8)]"


def kernel_with(names: tuple[str, ...], role: str):
    """A kernel whose parameters, shared tiles, registers or loops have these names."""
    params, lines = ['first: T.Buffer((1024,), "float16")', 'second: T.Buffer((1024,), "float16")'], []
    for name in names:
        match role:
            case "parameters":
                params.append(f'{name}: T.Buffer((1024,), "float16")')
                lines.append(f"second{AT} = {name}{AT} + {name}{AT}")
            case "shared tiles":
                lines.append(f'{name} = T.alloc_buffer((1024,), "float16", scope="shared.dyn")')
                lines.append(f"{name}{AT} = first{AT} + first{AT}")
                lines.append(f"second{AT} = {name}{AT} + {name}{AT}")
            case "registers":
                lines.append(f'{name} = T.alloc_buffer((8,), "float32", scope="local")')
                lines.append(f'{name}[0] = T.exp(T.Cast("float32", first[tx]))')
                lines.append(f'second[tx] = T.Cast("float16", {name}[0])')
            case "loops":
                lines.append(f"for {name} in range(9):")
                lines.append(f"    second{AT} = first[T.Ramp({name} * 8, 1, 8)] + first{AT}")
    return function("named", ", ".join(params), 128, "\n".join(lines))


@pytest.mark.parametrize("role", ["parameters", "shared tiles", "registers", "loops"])
def test_names_that_mean_something_give_clean_code(role):
    f = kernel_with(NASTY, role)
    assert build_cuda(cuda_text(f).text, "sm_80").resources
    assert build_hip(hip_text(f).text).resources


def test_kernels_named_like_functions_give_clean_code():
    made = [function(name, 'A: T.Buffer((128,), "float32")', 128, "A[tx] = A[tx] + 1") for name in KERNELS]
    assert len(build_cuda("".join(cuda_text(f).text for f in made), "sm_80").resources) == len(KERNELS)
    assert len(build_hip("".join(hip_text(f).text for f in made)).resources) == len(KERNELS)


@pytest.mark.parametrize(("name", "becomes"), [
    ("v1", "v1_"), ("asm", "asm_"), ("DEV", "DEV_"), ("__syncthreads", "v__syncthreads"), ("9x", "v9x"),
    ("tile", "tile"), ("v", "v"), ("_X", "v_X"),
])  # fmt: skip
def test_a_reserved_name_is_changed_in_one_way(name, becomes):
    assert free_name(name, RESERVED, ()) == becomes


def test_a_name_that_is_taken_is_counted():
    assert free_name("i", RESERVED, {"i", "i_1"}) == "i_2"
    assert free_name("asm", RESERVED, {"asm_"}) == "asm__1"


def test_a_kernel_called_main_is_called_otherwise():
    assert kernel_name("main", RESERVED) == "main_"
    assert kernel_name("sinf", RESERVED) == "sinf_"
    assert kernel_name("copy", RESERVED) == "copy"
