"""CUDA C++: the dialect, and how it prints tile operations and hardware rows."""

from __future__ import annotations

from typing import Any

from tilelab.codegen.c_like import print_kernel, tensor_map_of
from tilelab.codegen.dialect import INTEGERS, Dialect, Use, config
from tilelab.codegen.ptx_rows import helper_of_row, helper_of_tma, row_function
from tilelab.codegen.shared_tiles import descriptor_of
from tilelab.codegen.templates.cuda import CUDA_HELPERS
from tilelab.codegen.types import is_float
from tilelab.errors import InternalError
from tilelab.hardware import row as hardware_row
from tilelab.hardware.model import Shared
from tilelab.ir import build as b
from tilelab.ir import nodes as n
from tilelab.ir.tile_ops import operand
from tilelab.trace.code import CodeText, Parameter

__all__ = ["Cuda", "cuda_text"]

_FLOAT_MATH = {
    "exp": "expf", "exp2": "exp2_approx", "exp10": "exp10f", "log": "logf", "log2": "log2f",
    "log10": "log10f",
    "log1p": "log1pf", "sqrt": "sqrtf", "rsqrt": "rsqrtf", "sin": "sinf", "cos": "cosf", "tan": "tanf",
    "tanh": "tanhf", "sinh": "sinhf", "cosh": "coshf", "asin": "asinf", "acos": "acosf", "atan": "atanf",
    "atan2": "atan2f", "pow": "powf", "power": "powf", "fmod": "fmodf", "fabs": "fabsf", "abs": "fabsf",
    "floor": "floorf", "ceil": "ceilf", "round": "rintf", "nearbyint": "rintf", "trunc": "truncf",
    "erf": "erff",
    "sigmoid": "sigmoid", "min": "fminf", "max": "fmaxf", "fma": "fmaf",
}  # fmt: skip
_DOUBLE = {
    word: name[:-1]
    for word, name in _FLOAT_MATH.items()
    if name.endswith("f") and word != "erf"
} | {"exp2": "exp2", "erf": "erf"}  # fmt: skip


class Cuda(Dialect):
    """CUDA C++ for NVRTC and nvcc, without includes."""

    language = "cuda"
    warp = 32

    def __init__(self) -> None:
        self.helpers = dict(CUDA_HELPERS)
        self.words = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "uint2", 16: "uint4"}
        self.extra_types = {"float8_e4m3fn": "float8_e4m3", "float8_e5m2": "float8_e5m2"}
        self.math_words = (
            {(word, "float32"): name for word, name in _FLOAT_MATH.items()}
            | {(word, "float64"): name for word, name in _DOUBLE.items()}
            | {(word, kind): f"{word}_of" for word in ("min", "max", "abs") for kind in INTEGERS}
            | {("popcount", kind): "__popc" for kind in ("int32", "uint32")}
            | {("clz", kind): "__clz" for kind in ("int32", "uint32")}
        )

    def index(self, tag: str) -> str:
        return tag

    def known_range(self, name: str, tag: str, block: tuple[int, int, int]) -> str:
        # Spares the corrections that division and remainder of possibly negative numbers need.
        if tag.startswith("blockIdx"):
            return f"__builtin_assume({name} >= 0);"
        return f"__builtin_assume({name} >= 0 && {name} < {block['xyz'.index(tag[-1])]});"

    def uniform(self, text: str, use: Use) -> str:
        return f"__shfl_sync(0xffffffffu, {text}, 0)"

    def pool(self, size: int) -> str:
        return f"extern __shared__ __align__(1024) unsigned char pool[];  // {size} bytes"

    def signature(self, printer: Any, parameters: tuple[Parameter, ...]) -> str:
        words = []
        for p in parameters:
            if p.kind == "tensor_map":
                printer.use("CUtensorMap")
                words.append(f"const __grid_constant__ CUtensorMap {p.name}")
            elif p.kind == "scalar":
                words.append(f"{self.type_name(p.dtype)} {p.name}")
            else:
                param = printer.frame.params[p.index]
                const = "" if param in printer.frame.written else "const "
                words.append(f"{const}{self.type_name(p.dtype)}* __restrict__ {p.name}")
        # Moving registers between warpgroups presumes that one block has the multiprocessor's registers to
        # itself.
        moves = {"set_max_registers_up", "set_max_registers_down"} & printer.used
        bounds = f"{printer.frame.threads}, 1" if moves else str(printer.frame.threads)
        head = f'extern "C" __global__ void __launch_bounds__({bounds}) {printer.frame.entry}('
        return head + "\n    " + ",\n    ".join(words) + ") {"

    # ---- synchronisation

    def op_barrier(self, p: Any, call: Any) -> None:
        _, _, count = p.group
        threads, number = int(config(call, "threads", count) or count), config(call, "id")
        if threads == p.frame.threads and number in (None, 0):
            p.write("__syncthreads();")
        elif threads == self.warp and number is None:
            p.write("__syncwarp();")
        else:
            # 0 is the whole block's; a role without a number of its own takes one by its place.
            number = number if number is not None else 1 + p.group[1] // self.warp % 15
            p.write(f"{p.use('named_barrier')}({int(number)}, {threads});")

    def op_commit_group(self, p: Any, call: Any) -> None:
        kind = config(call, "kind", "cp.async")
        names = {"cp.async": "cp_async_commit", "wgmma": "wgmma_commit", "bulk": "tma_store_commit"}
        p.write(f"{p.use(_kind(names, kind, call))}();")

    def op_wait_group(self, p: Any, call: Any) -> None:
        kind, pending = config(call, "kind", "cp.async"), int(config(call, "pending", 0))
        names = {
            "cp.async": "cp_async_wait", "wgmma": "wgmma_wait", "bulk": "tma_store_wait",
            "bulk.read": "tma_store_wait_read",
        }  # fmt: skip
        p.write(f"{p.use(_kind(names, kind, call))}<{pending}>();")
        if kind == "wgmma" and pending == 0:
            for name in p.accumulators:
                p.write(f"{p.use('wgmma_landed')}({name});")

    def op_fence(self, p: Any, call: Any) -> None:
        kind = config(call, "kind")
        names = {
            "proxy.async": "fence_proxy_async", "mbarrier_init": "fence_mbarrier_init",
            "wgmma": "wgmma_fence",
        }  # fmt: skip
        p.write(f"{p.use(_kind(names, kind, call))}();")

    def op_mbarrier_init(self, p: Any, call: Any) -> None:
        p.write(f"{p.use('mbarrier_init')}({p.pointer(call.args[0])}, {p.text(call.args[1])});")

    def op_mbarrier_expect(self, p: Any, call: Any) -> None:
        p.write(f"{p.use('mbarrier_expect')}({p.pointer(call.args[0])}, {p.text(call.args[1])});")

    def op_mbarrier_arrive(self, p: Any, call: Any) -> None:
        p.write(f"{p.use('mbarrier_arrive')}({p.pointer(call.args[0])});")

    def op_mbarrier_wait(self, p: Any, call: Any) -> None:
        p.write(f"{p.use('mbarrier_wait')}({p.pointer(call.args[0])}, {p.text(call.args[1])});")

    def op_set_max_registers(self, p: Any, call: Any) -> None:
        direction = "up" if config(call, "increase") else "down"
        p.write(f"{p.use(f'set_max_registers_{direction}')}<{int(config(call, 'count'))}>();")

    def op_print(self, p: Any, call: Any) -> None:
        value, message = operand(call, "value"), str(config(call, "message", ""))
        if isinstance(value, n.Region):
            value = b.load(value.source, [r.min for r in value.region])
        form, word = ("%f", "double") if is_float(n.dtype_of(value)) else ("%lld", "i64")
        p.use("integers")
        name = message.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
        p.write(f'printf("{name} {form}\\n", {word}({p.text(value)}));')

    # ---- hardware rows

    def op_issue(self, p: Any, call: Any) -> None:
        """Execute a row: its family says how its operands are written."""
        row = hardware_row(str(config(call, "row")))
        args = list(call.args)
        guard = args.pop() if not isinstance(args[-1], n.Region) else None
        family = _FAMILIES.get(row.family)
        if family is None or row.dialect not in ("ptx", "c"):
            raise InternalError(f"no printing for the row {row.name} in {self.language}")
        if row.dialect == "ptx" and row.family != "tma":
            name = row_function(row)
            self.helpers.setdefault(name, helper_of_row(row))
            p.use(name)
        family(self, p, call, row, args, guard)

    def _plain(self, p: Any, call: Any, row: Any, args: list[Any], guard: Any) -> None:
        words = [p.pointer(a) for a in args]
        if "bytes" in row.fields and guard is not None:
            words.append(p.text(guard))
        elif guard is not None:
            p.write(f"if ({p.text(guard)})")
        p.write(f"{row_function(row)}({', '.join(words)});")

    def _wgmma(self, p: Any, call: Any, row: Any, args: list[Any], guard: Any) -> None:
        d, a, second = args
        size = _extent_of_buffer(d.source)
        p.accumulators[p.expressions.name(d.source)] = size
        words = [p.pointer(d)]
        for region, held in ((a, row.a), (second, row.b)):
            if isinstance(held, Shared):
                p.use("wgmma_descriptor")
                start, form = p.expressions.tile_start(region), descriptor_of(p, region, held)
                words.append(f"wgmma_descriptor({start}, {form:#x}ull)")
            else:
                words.append(p.pointer(region))
        # The row's predicate is its scale: where it is false, D is overwritten instead of added to.
        keeps = "true" if guard is None else p.text(guard)
        words.append("false" if config(call, "clear", False) else keeps)
        p.write(f"{row_function(row)}({', '.join(words)});")

    def _tma(self, p: Any, call: Any, row: Any, args: list[Any], guard: Any) -> None:
        if guard is not None:
            p.write(f"if ({p.text(guard)})")
        load = isinstance(row.d, Shared)
        outside, inside = (args[1], args[0]) if load else (args[0], args[1])
        held = row.d if load else row.a
        rank = len(outside.region)
        # A box has two axes; those before them are walked one index at a time.
        box = (1,) * (rank - 2) + held.tile
        found = tuple(int(r.extent) for r in outside.region)
        if rank < 2 or found != box:
            raise InternalError(f"{row.name} is given a box of {found}: {outside}")
        name = tensor_map_of(p, outside, box, held.admits[0])
        helper = helper_of_tma(row, rank)
        self.helpers.setdefault(helper.name, helper)
        corner = ", ".join(p.text(r.min) for r in reversed(list(outside.region)))
        start = p.expressions.tile_start(inside)
        words = f"{start}, &{name}, {p.pointer(args[2])}" if load else f"&{name}, {start}"
        p.write(f"{p.use(helper.name)}({words}, {corner});")

    def _load(self, p: Any, call: Any, row: Any, args: list[Any], guard: Any) -> None:
        d, a, word = p.pointer(args[0]), p.pointer(args[1]), self.word(row.bytes, p.use)
        if guard is None:
            p.write(f"*({word}*)({d}) = *(const {word}*)({a});")
        else:
            p.write(f"{p.use('load_words')}<{word}>({d}, {a}, {p.text(guard)});")

    def _store(self, p: Any, call: Any, row: Any, args: list[Any], guard: Any) -> None:
        d, a, word = p.pointer(args[0]), p.pointer(args[1]), self.word(row.bytes, p.use)
        head = "" if guard is None else f"if ({p.text(guard)}) "
        p.write(f"{head}*({word}*)({d}) = *(const {word}*)({a});")

    def _fma(self, p: Any, call: Any, row: Any, args: list[Any], guard: Any) -> None:
        d, a, second = (f"*({p.pointer(r)})" for r in args)
        kind = self.type_name(n.dtype_of(args[0].source))
        p.write(f"{d} += {kind}({a}) * {kind}({second});")


def _kind(names: dict[str, str], kind: Any, call: Any) -> str:
    if kind not in names:
        raise InternalError(f"no printing for kind {kind!r} of {call}")
    return names[kind]


def _extent_of_buffer(buffer: Any) -> int:
    size = 1
    for e in buffer.shape:
        size *= int(e)
    return size


_FAMILIES: dict[str, Any] = {
    "mma": Cuda._plain,
    "ldmatrix": Cuda._plain,
    "stmatrix": Cuda._plain,
    "cp_async": Cuda._plain,
    "wgmma": Cuda._wgmma,
    "tma": Cuda._tma,
    "load": Cuda._load,
    "store": Cuda._store,
    "fma": Cuda._fma,
}


def cuda_text(f: Any, line_directives: bool = False) -> CodeText:
    """The device-stage function as CUDA C++, with its lines' sources and all that a launch has to know."""
    return print_kernel(f, Cuda(), line_directives)
