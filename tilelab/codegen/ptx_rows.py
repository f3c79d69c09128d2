"""Helpers made from hardware rows whose text is PTX: one inline function a row, its operands as pointers.

`mma.m16n8k16.f32.f16` becomes `mma_m16n8k16_f32_f16(float* d, const half* a, const half* b)`. A register
operand's array is read and written as 32-bit registers; a shared operand is an address, or for wgmma a
descriptor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

from tilelab.codegen.helpers import Helper
from tilelab.errors import InternalError
from tilelab.hardware.model import Global, Instruction, Register, Shared, bits

__all__ = ["helper_of_row", "helper_of_tma", "row_function"]


def row_function(row: Instruction) -> str:
    """The name of the row's function."""
    return re.sub(r"\W", "_", row.name)


def helper_of_row(row: Instruction) -> Helper:
    """The inline function that executes the row. InternalError for a row that is not PTX, or is TMA's."""
    if row.dialect != "ptx" or row.family == "tma":
        raise InternalError(f"{row.name} is no PTX row")
    return _Function(row).helper()


class _Function:
    """Numbers the operands of one asm statement: outputs first, then inputs."""

    def __init__(self, row: Instruction) -> None:
        self.row = row
        self.numbers: Iterator[int] = count()
        self.parameters: list[str] = []
        self.casts: list[str] = []
        self.outputs: list[str] = []
        self.inputs: list[str] = []
        self.fields: dict[str, str] = {}
        self.needs: set[str] = {"DEV"}

    def helper(self) -> Helper:
        self._destination()
        for name, operand in self.row.operands[1:]:
            self._input(name, operand)
        text, extra = self.row.text, ""
        for name in self.row.fields:
            extra += self._field(name)
        body = text.format(**self.fields)
        if "scale" in self.row.fields:
            scale = self.fields["number of scale"]
            body = f"{{ .reg .pred p; setp.ne.b32 p, {scale}, 0; {body} }}"
        name = row_function(self.row)
        asm = f'  asm volatile("{body}" : {", ".join(self.outputs)} : {", ".join(self.inputs)}'
        asm += f"{self._clobber()});"
        casts = "".join(f"  {line}\n" for line in self.casts)
        return Helper(
            name,
            f"DEV void {name}({', '.join(self.parameters)}) {{\n{casts}{asm}\n}}",
            tuple(sorted(self.needs)),
        )

    def _clobber(self) -> str:
        memory = any(isinstance(operand, Shared | Global) for _, operand in self.row.operands)
        return ' : "memory"' if memory else ""

    def _destination(self) -> None:
        operand = self.row.d
        if isinstance(operand, Register):
            self._registers("d", operand, written=True)
        else:
            self._address("d", operand)

    def _input(self, name: str, operand: Register | Shared | Global) -> None:
        if isinstance(operand, Register):
            self._registers(name, operand, written=False)
        elif self.row.family == "wgmma":
            self.needs.add("integers")
            self.parameters.append(f"u64 {name}")
            self._take(name, f'"l"({name})')
        else:
            self._address(name, operand)

    def _take(self, name: str, constraint: str) -> None:
        self.inputs.append(constraint)
        self.fields[name] = f"%{next(self.numbers)}"

    def _registers(self, name: str, operand: Register, written: bool) -> None:
        # The accumulator of a product is read as well; the destination of a copy is not.
        update = "+" if self.row.b is not None else "="
        wide = bits(operand.dtype) >= 32
        letter, kind = ("f", "float") if operand.dtype == "float32" else ("r", "u32")
        const = "" if written else "const "
        if wide:
            self.parameters.append(f"{const}{kind}* {name}")
            access = name
        else:
            self.needs.add("integers")
            self.parameters.append(f"{const}void* {name}")
            access = f"{name}32"
            self.casts.append(f"{const}u32* {access} = ({const}u32*){name};")
        numbers = []
        for i in range(operand.registers):
            numbers.append(f"%{next(self.numbers)}")
            if written:
                self.outputs.append(f'"{update}{letter}"({access}[{i}])')
            else:
                self.inputs.append(f'"{letter}"({access}[{i}])')
        self.fields[name] = "{" + ", ".join(numbers) + "}"

    def _address(self, name: str, operand: Shared | Global) -> None:
        const = "" if name == "d" else "const "
        self.parameters.append(f"{const}void* {name}")
        if isinstance(operand, Shared):
            self.needs.add("shared_address")
            self._take(name, f'"r"(shared_address({name}))')
        else:
            self._take(name, f'"l"({name})')

    def _field(self, name: str) -> str:
        if name == "bytes":
            self.parameters.append("bool inside = true")
            self._take(name, f'"r"(inside ? {self.row.bytes} : 0)')
        elif name == "scale":
            self.parameters.append("bool accumulate")
            self.inputs.append('"r"((int)accumulate)')
            self.fields["number of scale"] = f"%{next(self.numbers)}"
            self.fields[name] = "p"
        else:
            raise InternalError(f"{self.row.name} has a field {name!r} that the printer does not know")
        return ""


def helper_of_tma(row: Instruction, rank: int) -> Helper:
    """A box to or from shared memory, of a tensor with `rank` axes; coordinates come innermost first.

    Boxes differ by their tensor map only, so that all of a rank share one function.
    """
    is_load = isinstance(row.d, Shared)
    name = f"tma_{'load' if is_load else 'store'}_{rank}d"
    text = row.text.replace(".tensor.2d.", f".tensor.{rank}d.")
    first = 3 if is_load else 2
    numbers = "{" + ", ".join(f"%{first + i}" for i in range(rank)) + "}"
    coordinates = [f"c{i}" for i in range(rank)]
    listed = ", ".join(f"int {c}" for c in coordinates)
    inputs = ", ".join(f'"r"({c})' for c in coordinates)
    if is_load:
        head = f"void* d, const CUtensorMap* map, u64* barrier, {listed}"
        body = text.format(d="%0", map="%1", a=numbers, barrier="%2")
        given = f'"r"(shared_address(d)), "l"(map), "r"(shared_address(barrier)), {inputs}'
    else:
        head = f"const CUtensorMap* map, const void* a, {listed}"
        body = text.format(map="%0", d=numbers, a="%1")
        given = f'"l"(map), "r"(shared_address(a)), {inputs}'
    code = f'DEV void {name}({head}) {{\n  asm volatile("{body}"\n               :: {given} : "memory");\n}}'
    return Helper(name, code, ("CUtensorMap", "shared_address"))
