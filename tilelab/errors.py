"""The two families of errors: `TileError`, which the user can mend, and `InternalError`, which is ours.

Codes live in one table, `CODES`. Every code has a failing example in `tests/errors/`, which is also its page
in the docs and what `tilelab explain CODE` prints.
"""

from __future__ import annotations

import linecache
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

__all__ = ["CODES", "Code", "InternalError", "Place", "Refused", "TileError", "place"]


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of the user's source: file, first and last line, first and last column, counted from 1."""

    file: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    label: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Refused:
    """One thing that was tried and did not fit: its name and the reason, with numbers."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Code:
    """An error code: family by its hundreds digit, and the one-line meaning shown in the reference.

    `advice` is the help of errors whose place of origin knows nothing more particular.
    """

    code: str
    title: str
    advice: str = ""


CODES: tuple[Code, ...] = (
    # TL1xx: reading the source
    Code("TL101", "this Python statement cannot be part of a kernel"),
    Code("TL102", "no such name in tilelab.language"),
    Code("TL103", "unexpected keyword or argument of a T. function"),
    Code("TL104", "a value that must be known when the kernel is compiled is not"),
    Code("TL105", "the kernel's signature or annotations are not usable"),
    Code("TL106", "T.Kernel is missing, repeated or has unusable extents"),
    Code("TL107", "a tile is indexed with something that is not an index"),
    Code("TL108", "a name is used before it has a value"),
    Code("TL109", "an operator or conversion that a value of the kernel does not have"),
    Code("TL110", "an assertion of the kernel does not hold",
         "pass other arguments, or change the assertion, which is the kernel's own"),
    Code("TL111", "Python raised an error while the kernel was read",
         "what does not depend on the device is ordinary Python: mend it, or move it out of the kernel"),
    Code("TL112", "the shape or dtype of a tile is not usable"),
    # TL2xx: tiles, layouts, instructions
    Code("TL201", "the operands of a tile operation do not fit together"),
    Code("TL202", "two operations want different layouts of one buffer"),
    Code("TL203", "no instruction fits this operation"),
    Code("TL204", "a tile is read before it was given a value"),
    Code("TL205", "a loop cannot be mapped onto the threads"),
    # TL3xx: memory and synchronisation
    Code("TL301", "a block needs more shared memory than the chip has"),
    Code("TL302", "a block asks for more threads or registers than the chip has"),
    Code("TL303", "a pipelined loop cannot be pipelined as asked",
         "num_stages=2 or 3 lets loads run ahead; 0 turns that off"),
    Code("TL304", "waits and arrivals of threads do not match"),
    Code("TL305", "a tensor has more elements than offsets can count"),
    # TL4xx: targets and tools
    Code("TL401", "no such target"),
    Code("TL402", "the target lacks a feature that the kernel needs"),
    Code("TL403", "a tool that builds for this target is missing"),
    Code("TL404", "the target's compiler refused the generated code",
         "this is a fault of tilelab's printer: please report the kernel"),
    Code("TL405", "no such setting"),
    Code("TL406", "there is no such pass or kernel to show"),
    # TL5xx: running
    Code("TL501", "an argument is missing, or there are too many"),
    Code("TL502", "an argument has the wrong rank or shape",
         "pass tensors of the rank and sizes that the kernel's signature names"),
    Code("TL503", "an argument has the wrong dtype"),
    Code("TL504", "an argument is on the wrong device"),
    Code("TL505", "an argument's strides cannot be used"),
    Code("TL506", "the device reported an error",
         "set TILELAB_EMULATE=1 to find the statement at fault"),
    # TL6xx: emulation found a fault
    Code("TL601", "an access is out of bounds",
         "guard the access with an if, or move the tile with T.copy, which clips at the edges of tensors"),
    Code("TL602", "a value is read that was never written",
         "write every element before it is read: T.clear, T.fill, or a loop over the whole tile"),
    Code("TL603", "two threads race for the same bytes",
         "put T.sync_threads() between the two, or let each thread use elements of its own"),
    Code("TL604", "the kernel does not come to an end",
         "every wait needs a matching arrival, and every loop a condition that becomes false"),
    Code("TL605", "a proxy fence is missing",
         'put T.fence(kind="proxy.async") after the writes and before the barrier'),
)  # fmt: skip
_BY_CODE = {code.code: code for code in CODES}

_here: ContextVar[Place | None] = ContextVar("tilelab_place", default=None)


@contextmanager
def place(where: Place | None) -> Generator[None, None, None]:
    """Errors raised inside point at `where` unless they name a place of their own."""
    token = _here.set(where or _here.get())
    try:
        yield
    finally:
        _here.reset(token)


class TileError(Exception):
    """A mistake in the user's kernel, arguments or environment, with its place, its reason and the way out.

    `message` is one line in lower case with the numbers; `help` is a change that works for this very case,
    by default the code's advice. The first of `places` is where the error is; the others carry labels that
    explain the clash.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        places: tuple[Place, ...] = (),
        refusals: tuple[Refused, ...] = (),
        help: str = "",
    ) -> None:
        if code not in _BY_CODE:
            raise InternalError(f"error code {code} is not in tilelab.errors.CODES")
        here = _here.get()
        self.code = code
        self.message = message
        self.places = places or ((here,) if here is not None else ())
        self.refusals = refusals
        self.help = help or _BY_CODE[code].advice
        self.step = ""
        super().__init__(message)

    def at_step(self, step: str) -> TileError:
        """Say in which step of the pipeline the error was found, and give the error back."""
        self.step = self.step or step
        return self

    def __str__(self) -> str:
        return render(self)

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the message, without the frames between the cell and the compiler."""
        return str(self).splitlines()


class InternalError(Exception):
    """A fault of tilelab itself: please report it with the folder that the message names."""


def render(error: TileError) -> str:
    """The error as text: code, place with carets, refusals, help and the step that found it."""
    out = [f"error[{error.code}]: {error.message}"]
    width = max((len(str(p.line)) for p in error.places), default=1)
    for index, where in enumerate(error.places):
        arrow = "-->" if index == 0 else ":::"
        out.append(f"{' ' * width}{arrow} {where}")
        text = linecache.getline(where.file, where.line).rstrip("\n")
        if text:
            last = (
                where.end_column if where.end_line in (0, where.line) and where.end_column else len(text) + 1
            )
            first = where.column if where.column <= len(text) else 1
            mark = ("^" if index == 0 else "-") * max(1, last - first)
            label = f" {where.label}" if where.label else ""
            out.append(f"{' ' * width} |")
            out.append(f"{where.line:>{width}} | {text}")
            out.append(f"{' ' * width} | {' ' * (first - 1)}{mark}{label}")
    pad = max((len(r.name) for r in error.refusals), default=0)
    out += [f"{' ' * width} = {r.name:<{pad}}  refused: {r.reason}" for r in error.refusals]
    if error.help:
        out.append(f"{' ' * width} help: {error.help}")
    tail = f"in {error.step} · " if error.step else ""
    out.append(f"{' ' * width} {tail}tilelab explain {error.code}")
    return "\n".join(out)
