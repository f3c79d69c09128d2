"""Turn disassembled gfx942 text into instructions with typed operands.

The text is LLVM's assembler syntax: a mnemonic, operands separated by commas, then modifiers such as
`offset:16`, `row_shr:1` or `glc`. Registers of the accumulation file (a0 …) are numbered from
`ACCUMULATORS` in one vector file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from tilelab.errors import InternalError
from tilelab.hardware.amd.disassembler import Line, disassemble

__all__ = [
    "ACCUMULATORS",
    "EXEC",
    "M0",
    "VCC",
    "Instruction",
    "Operand",
    "integers",
    "program",
    "register_name",
    "unknown",
]

ACCUMULATORS = 256
"""Number of the first accumulation register in the vector file."""
VCC, M0, EXEC = 106, 124, 126
"""Numbers of the special scalar registers."""

_NAMED_SCALARS = {
    "flat_scratch_lo": (102, 1),
    "flat_scratch_hi": (103, 1),
    "flat_scratch": (102, 2),
    "vcc_lo": (VCC, 1),
    "vcc_hi": (VCC + 1, 1),
    "vcc": (VCC, 2),
    "m0": (M0, 1),
    "exec_lo": (EXEC, 1),
    "exec_hi": (EXEC + 1, 1),
    "exec": (EXEC, 2),
}
_FIRST_TRAP_TEMPORARY = 108
_INLINE_FLOATS = {text: float(text) for text in ("0.5", "1.0", "2.0", "4.0", "-0.5", "-1.0", "-2.0", "-4.0")}
_INLINE_FLOATS["0.15915494"] = 0.15915494
_INLINE_FLOATS["0.15915494309189532"] = 0.15915494309189532
"""Constants with an encoding of their own; the last two are 1/(2π)."""
_ZERO_APERTURES = ("src_shared_base", "src_private_base")
"""Bases of the LDS and scratch windows in the flat address space: the emulator keeps LDS apart, at zero."""

_REGISTER = re.compile(r"^([vsa]|ttmp)(?:(\d+)|\[(\d+):(\d+)\])$")
_MODIFIER = re.compile(
    r"\s+((?:[a-z_0-9]+:(?:\[[^\]]*\]|swizzle\([^)]*\)|\S+))"
    r"|offen|idxen|glc|slc|lds|sc0|sc1|nt|clamp|gds|bound_ctrl|row_mirror|row_half_mirror)$"
)
_SIGNED_HALF = re.compile(r"s_(movk|addk|mulk|cmovk|cmpk_\w+)_i32$")
_ENCODING_SUFFIX = re.compile(r"_(e32|e64|sdwa|dpp)$")


@dataclass(frozen=True)
class Operand:
    """An operand: `kind` is v, s, integer, float, scc, off or text; `count` its number of registers."""

    kind: str
    value: int | float
    count: int = 1
    is_negated: bool = False
    is_absolute: bool = False

    @property
    def register(self) -> int:
        """Number of its first register."""
        return int(self.value)


@dataclass(frozen=True)
class Instruction:
    """A decoded instruction; `name` is the mnemonic without the encoding suffix (_e32, _e64, _sdwa, _dpp)."""

    pc: int
    size: int
    name: str
    operands: tuple[Operand, ...]
    raw_operands: tuple[str, ...]
    modifiers: dict[str, str]
    text: str

    def offset(self, name: str = "offset") -> int:
        """The value of an integer modifier, or 0 where it is absent."""
        return int(self.modifiers.get(name, "0"), 0)


@lru_cache(maxsize=64)
def program(code_object: bytes) -> dict[int, Instruction]:
    """The instructions of a code object by address, without padding; cached by content."""
    return {line.pc: _instruction(line) for line in disassemble(code_object) if line.text}


def unknown(instruction: Instruction, what: str = "instruction") -> InternalError:
    """The error for something that the emulator does not model: it is never skipped."""
    return InternalError(
        f"the gfx942 emulator does not model this {what}: {instruction.name} at pc {instruction.pc:#x} "
        f"({instruction.text})"
    )


def register_name(register: int) -> str:
    """The assembler's name of a vector register."""
    return f"a{register - ACCUMULATORS}" if register >= ACCUMULATORS else f"v{register}"


def integers(text: str) -> tuple[int, ...]:
    """The numbers of a list modifier such as `op_sel:[0,1]`."""
    return tuple(int(part, 0) for part in text.strip("[]").split(","))


def _instruction(line: Line) -> Instruction:
    mnemonic, _, rest = line.text.replace("\t", " ").partition(" ")
    if mnemonic == "s_waitcnt":
        return Instruction(line.pc, line.size, mnemonic, (), (rest.strip(),), {}, line.text)
    rest = " " + rest
    modifiers: dict[str, str] = {}
    while found := _MODIFIER.search(rest):
        name, _, value = found.group(1).partition(":")
        modifiers[name] = value
        rest = rest[: found.start()]
    raw = _split(rest.strip())
    name = _ENCODING_SUFFIX.sub("", mnemonic)
    operands = tuple(_operand(text) for text in raw)
    if _SIGNED_HALF.match(name):
        operands = (*operands[:-1], _sign_extended(operands[-1]))
    return Instruction(line.pc, line.size, name, operands, raw, modifiers, line.text)


def _sign_extended(operand: Operand) -> Operand:
    """A 16-bit immediate, which the text shows without its sign."""
    return replace(operand, value=(int(operand.value) ^ 0x8000) - 0x8000)


def _split(text: str) -> tuple[str, ...]:
    """Cut at the commas that stand outside brackets."""
    parts = re.split(r",\s*(?![^\[(]*[\])])", text)
    return tuple(part.strip() for part in parts if part.strip())


@lru_cache(maxsize=4096)
def _operand(text: str) -> Operand:
    negated = absolute = False
    if text.startswith("neg("):
        negated, text = True, text[4:-1]
    elif text.startswith("-") and not text[1].isdigit():
        negated, text = True, text[1:]
    if text.startswith("|"):
        absolute, text = True, text[1:-1]
    elif text.startswith("abs("):
        absolute, text = True, text[4:-1]
    found = _REGISTER.match(text)
    if found:
        kind, single, first, last = found.groups()
        start = int(single or first)
        count = int(last) - start + 1 if last else 1
        base = {"a": ACCUMULATORS, "ttmp": _FIRST_TRAP_TEMPORARY}.get(kind, 0)
        return Operand("v" if kind in "va" else "s", base + start, count, negated, absolute)
    if text in _NAMED_SCALARS:
        register, count = _NAMED_SCALARS[text]
        return Operand("s", register, count, negated, absolute)
    if text in _INLINE_FLOATS:
        return Operand("float", _INLINE_FLOATS[text], 1, negated, absolute)
    if text in ("off", "null"):
        return Operand("off", 0, 0)
    if text == "scc":
        return Operand("scc", 0)
    if text in _ZERO_APERTURES:
        return Operand("integer", 0)
    try:
        return Operand("integer", int(text, 0), 1, negated, absolute)
    except ValueError:
        # hwreg(...), sext(...), message names: the instruction that takes them decides from the raw text
        return Operand("text", 0)
