"""HIP C++ for gfx942: the dialect, and how it prints tile operations and hardware rows."""

from __future__ import annotations

from typing import Any

from tilelab.codegen.c_like import print_kernel
from tilelab.codegen.dialect import INTEGERS, Dialect, Use, config, row_name
from tilelab.codegen.helpers import Helper
from tilelab.codegen.templates.hip import HIP_HELPERS
from tilelab.codegen.types import bytes_of
from tilelab.errors import InternalError, TileError
from tilelab.hardware import row as hardware_row
from tilelab.hardware.model import Instruction, Register
from tilelab.ir import nodes as n
from tilelab.trace.code import CodeText, Parameter

__all__ = ["Hip", "hip_text"]

_BUILTIN = (
    "exp",
    "exp10",
    "log",
    "log2",
    "log10",
    "sqrt",
    "sin",
    "cos",
    "fabs",
    "floor",
    "ceil",
    "trunc",
    "fma",
)
_FLOAT_MATH = {word: f"__builtin_{word}f" for word in _BUILTIN} | {
    "exp2": "__builtin_amdgcn_exp2f", "rsqrt": "__builtin_amdgcn_rsqf", "abs": "__builtin_fabsf",
    "round": "__builtin_rintf", "nearbyint": "__builtin_rintf", "tanh": "hyperbolic_tangent",
    "erf": "error_function",
    "pow": "power", "power": "power", "sigmoid": "sigmoid", "min": "__builtin_fminf",
    "max": "__builtin_fmaxf",
}  # fmt: skip
_DOUBLE_MATH = {word: f"__builtin_{word}" for word in ("sqrt", "fabs", "floor", "ceil", "trunc", "fma")} | {
    "min": "__builtin_fmin", "max": "__builtin_fmax", "abs": "__builtin_fabs",
}  # fmt: skip


class Hip(Dialect):
    """HIP C++ for clang's AMDGPU back end, without headers."""

    language = "hip"
    warp = 64
    dynamic_pool = False

    def __init__(self) -> None:
        self.helpers = dict(HIP_HELPERS)
        self.words = {1: "unsigned char", 2: "w16", 4: "w32", 8: "u32x2", 16: "u32x4"}
        self.extra_types = {name: name for name in ("float8_e4m3fnuz", "float8_e5m2fnuz")}
        self.math_words = (
            {(word, "float32"): name for word, name in _FLOAT_MATH.items()}
            | {(word, "float64"): name for word, name in _DOUBLE_MATH.items()}
            | {(word, kind): f"{word}_of" for word in ("min", "max", "abs") for kind in INTEGERS}
            | {("popcount", kind): "__builtin_popcount" for kind in ("int32", "uint32")}
            | {("clz", kind): "__builtin_clz" for kind in ("int32", "uint32")}
        )

    def index(self, tag: str) -> str:
        kind, axis = tag.split(".")
        return f"__builtin_amdgcn_{'workgroup' if kind == 'blockIdx' else 'workitem'}_id_{axis}()"

    def uniform(self, text: str, use: Use) -> str:
        return f"__builtin_amdgcn_readfirstlane({text})"

    def word(self, size: int, use: Use) -> str | None:
        name = super().word(size, use)
        if name not in (None, "unsigned char"):
            use("vectors")
        return name

    def pool(self, size: int) -> str:
        return f"static __attribute__((shared, aligned(1024))) unsigned char pool[{size}];"

    def signature(self, printer: Any, parameters: tuple[Parameter, ...]) -> str:
        words = []
        for p in parameters:
            if p.kind == "scalar":
                words.append(f"{self.type_name(p.dtype)} {p.name}")
            else:
                const = "" if printer.frame.params[p.index] in printer.frame.written else "const "
                words.append(f"{const}{self.type_name(p.dtype)}* __restrict__ {p.name}")
        threads = printer.frame.threads
        bounds = f"amdgpu_flat_work_group_size({threads}, {threads})"
        head = f'extern "C" __attribute__((global, {bounds})) void {printer.frame.entry}('
        return head + "\n    " + ",\n    ".join(words) + ") {"

    # ---- synchronisation

    def op_barrier(self, p: Any, call: Any) -> None:
        threads = int(config(call, "threads", p.group[2]) or p.group[2])
        if threads == p.frame.threads:
            p.write(f"{p.use('block_barrier')}();")
        elif threads == self.warp:
            p.write(f"{p.use('wave_barrier')}();")
        else:
            raise InternalError(f"gfx942 has no barrier for {threads} of {p.frame.threads} threads")

    def op_print(self, p: Any, call: Any) -> None:
        raise TileError(
            "TL402",
            "T.print and T.device_assert need the device libraries of ROCm, "
            "which a kernel for gfx942 is built without",
            help="print on target='llvm', or in the emulator",
        )

    # ---- hardware rows

    def op_issue(self, p: Any, call: Any) -> None:
        """Execute a row: its family says how its operands are written."""
        row = hardware_row(str(config(call, "row")))
        args = list(call.args)
        guard = args.pop() if not isinstance(args[-1], n.Region) else None
        handler = _FAMILIES.get(row.family)
        if handler is None or row.dialect not in ("hip", "c"):
            raise InternalError(f"no printing for the row {row.name} in {self.language}")
        handler(self, p, row, args, guard)

    def _mfma(self, p: Any, row: Instruction, args: list[Any], guard: Any) -> None:
        name = row_name(row)
        self.helpers.setdefault(name, _mfma_helper(row))
        p.write(f"{p.use(name)}({', '.join(p.pointer(a) for a in args)});")

    def _load(self, p: Any, row: Instruction, args: list[Any], guard: Any) -> None:
        d, word = p.pointer(args[0]), self.word(row.bytes, p.use)
        if "resource" in row.fields:
            held = f"__builtin_amdgcn_raw_buffer_load_b{8 * row.bytes}"
            p.write(f"*({word}*)({d}) = {held}({self._resource(p, args[1], guard)}, 0, 0);")
        elif guard is None:
            p.write(f"*({word}*)({d}) = *(const {word}*)({p.pointer(args[1])});")
        else:
            p.write(f"{p.use('load_words')}<{word}>({d}, {p.pointer(args[1])}, {p.text(guard)});")

    def _store(self, p: Any, row: Instruction, args: list[Any], guard: Any) -> None:
        a, word = (
            f"*(const {self.word(row.bytes, p.use)}*)({p.pointer(args[1])})",
            self.word(row.bytes, p.use),
        )
        if "resource" in row.fields:
            held = f"__builtin_amdgcn_raw_buffer_store_b{8 * row.bytes}"
            p.write(f"{held}({a}, {self._resource(p, args[0], guard)}, 0, 0);")
            return
        head = "" if guard is None else f"if ({p.text(guard)}) "
        p.write(f"{head}*({word}*)({p.pointer(args[0])}) = {a};")

    def _resource(self, p: Any, region: Any, guard: Any) -> str:
        """The buffer descriptor and byte offset; where the guard fails the offset is one that is out of
        bounds.
        """
        buffer, size = region.source, bytes_of(n.dtype_of(region.source))
        total = " * ".join(p.expressions.text(e, 13) for e in (*buffer.shape, n.IntImm("int32", size)))
        first = p.expressions.offset(buffer, [r.min for r in region.region])
        offset = f"{p.expressions.text(first, 12)} * {size}"
        offset = offset if guard is None else f"{p.expressions.text(guard, 3)} ? {offset} : -1"
        return f"{p.use('buffer_of')}({p.expressions.name(buffer)}, {total}), {offset}"

    def _fma(self, p: Any, row: Instruction, args: list[Any], guard: Any) -> None:
        d, a, second = (f"*({p.pointer(r)})" for r in args)
        kind = self.type_name(n.dtype_of(args[0].source))
        p.write(f"{d} += {kind}({a}) * {kind}({second});")


_FAMILIES: dict[str, Any] = {
    "mfma": Hip._mfma,
    "load": Hip._load,
    "store": Hip._store,
    "fma": Hip._fma,
}
_VECTORS = {
    ("float32", 4): "f32x4",
    ("float32", 16): "f32x16",
    ("float16", 4): "f16x4",
    ("bfloat16", 4): "i16x4",
}


def _mfma_helper(row: Instruction) -> Helper:
    """The row's builtin on arrays in registers; bfloat16 operands go in as 16-bit integers."""
    held = {}
    for name, register in row.operands:
        if not isinstance(register, Register) or (register.dtype, register.values) not in _VECTORS:
            raise InternalError(f"no vector type for operand {name} of {row.name}")
        const = "" if name == "d" else "const "
        held[name] = f"*({const}{_VECTORS[register.dtype, register.values]}*){name}"
    name = row_name(row)
    text = row.text.format(**held)
    return Helper(
        name, f"DEV void {name}(float* d, const void* a, const void* b) {{ {text} }}", ("vectors", "DEV")
    )


def hip_text(f: Any, line_directives: bool = False) -> CodeText:
    """The device-stage function as HIP C++, with its lines' sources and all that a launch has to know."""
    return print_kernel(f, Hip(), line_directives)
