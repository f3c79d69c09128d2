"""What a run of a kernel does, found by emulating it: values, races, and the instructions issued.

report = tilelab.analyze(kernel, a, b, target="cuda:sm_80")
report.outputs, report.races
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilelab.errors import TileError

if TYPE_CHECKING:
    import numpy as np

    from tilelab.emulate.report import Race
    from tilelab.passes.base import Pass
    from tilelab.targets import Target

__all__ = ["Analysis", "analyze"]


@dataclass(frozen=True)
class Analysis:
    """An emulated run: the last pass before it, how that stage executes, what came out and what was found.

    `outputs` are NumPy arrays in the order of the kernel's `return`; `issued` counts executions of hardware
    rows by name; `steps` counts tile operations and turns of loops. `races` are those in shared memory:
    accesses of blocks and threads to global memory are not compared.
    """

    kernel: str
    target: str
    step: str
    stage: str
    outputs: tuple[np.ndarray, ...]
    races: tuple[Race, ...]
    issued: dict[str, int]
    steps: int
    blocks: int

    def __str__(self) -> str:
        place = f"after {self.step} (stage {self.stage})"
        head = f"{self.kernel} for {self.target} {place}: {self.blocks} blocks emulated"
        races = f"{len(self.races) or 'no'} race{'s' * (len(self.races) > 1)}"
        head = f"{head}; shared memory: {races}; global memory is not checked yet"
        return "\n".join([head, *map(_race_text, self.races)])


def _race_text(race: Race) -> str:
    first, second = race.first, race.second
    when = f" ({race.iteration.strip(' ,()')})" if race.iteration else ""
    what = f"{first.thread} {first.kind}s it, {second.thread} {second.kind}s it"
    lines = [f"  {race.buffer}{list(race.index)}: {what}, and nothing orders the two{when}"]
    for side in (first, second):
        if side.place is not None:
            text = linecache.getline(side.place.file, side.place.line).strip()
            lines.append(f"    {side.kind:<5} at line {side.place.line}: {text}".rstrip(" :"))
    return "\n".join(lines)


def analyze(
    kernel: Any,
    *args: Any,
    target: str | Target | None = None,
    passes: Iterable[Pass] | None = None,
    until: str | None = None,
    mode: str = "late",
    seed: int = 0,
    **kwargs: Any,
) -> Analysis:
    """Emulate a kernel on these arguments, which are left as they are, and report what happened.

    `kernel` is a function decorated with `jit`, called with its arguments, or a compiled Kernel, called with
    its inputs. `until` names the pass after which the IR is run, `passes` gives another pipeline; stages
    before `synced` run their threads in lockstep, so only later ones can race. `mode` says whether
    asynchronous copies land as late or as early as they may. Raises TL601, TL602, TL604, TL605 for other
    faults of the kernel.
    """
    from tilelab.driver.kernel import Kernel
    from tilelab.driver.lowering import lower
    from tilelab.driver.signature import pick_target
    from tilelab.emulate import emulate
    from tilelab.ir.build import stage_of
    from tilelab.targets import parse_target

    if isinstance(kernel, Kernel):
        parsed, chosen = kernel.parsed, parse_target(target) if target else kernel.target
        values = dict(zip(kernel.inputs, args, strict=False)) | kwargs
    elif kernel.style == "lazy":
        raise TileError("TL406", f"{kernel.__name__} is a factory of kernels",
                        help=f"call it first: tilelab.analyze({kernel.__name__}(…), …)")  # fmt: skip
    else:
        values = kernel.signature.bind(args, kwargs)
        parsed, chosen = kernel.parse(*args, **kwargs), pick_target(target or kernel.target, values)
    f, trace = lower(parsed, chosen, passes=passes, until=until)
    arrays, sizes = _arrays(parsed, values)
    known: dict[str, Any] = {**sizes}
    found = emulate(f, arrays, mode=mode, seed=seed, collect_races=True, **known)
    outputs = tuple(arrays[parsed.parameters[i].name] for i in parsed.returns)
    last = trace.steps[-1].name
    return Analysis(
        trace.kernel, str(chosen), last, stage_of(f), outputs, found.races, dict(found.issued), found.steps,
        found.blocks,
    )  # fmt: skip


def _arrays(parsed: Any, values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
    """Copies of the arguments by name with room for outputs, and the sizes that the kernel leaves open."""
    import numpy as np

    from tilelab.runtime.arguments import is_tensor, numpy_dtype, view_of
    from tilelab.runtime.check import evaluate, match_sizes

    given = {n: view_of(n, v) for n, v in values.items() if is_tensor(v)}
    inputs = [p for p in parsed.parameters if not p.output]
    sizes = match_sizes(parsed.name, inputs, given)
    arrays: dict[str, Any] = {}
    for p in parsed.parameters:
        if p.kind != "tensor":
            arrays[p.name] = values[p.name]
        elif p.output:
            arrays[p.name] = np.zeros([evaluate(n, sizes) for n in p.shape], numpy_dtype(p.dtype))
        else:
            arrays[p.name] = _copy(given[p.name])
    return arrays, sizes


def _copy(view: Any) -> np.ndarray:
    """A copy of an argument with the same strides, which the kernel may be compiled for."""
    from numpy.lib.stride_tricks import as_strided

    from tilelab.runtime.arguments import flat_span, view_of

    if view.device != "cpu":
        view = view_of("argument", view.value.cpu())
    flat = flat_span(view).copy()
    return as_strided(flat, view.shape, tuple(step * flat.itemsize for step in view.strides))
