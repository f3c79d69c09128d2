"""From a parsed kernel to something that can run: through the cache where it can, through every pass where it
must.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from tilelab import settings
from tilelab.driver.lowering import Loose, lower, pipeline_of, print_code, versions
from tilelab.errors import TileError
from tilelab.ir.nodes import PrimFunc
from tilelab.language.specs import ParsedKernel
from tilelab.passes.base import Pass
from tilelab.runtime import cache
from tilelab.runtime.plan import code_from_json, code_to_json
from tilelab.targets import Target
from tilelab.trace.code import CodeText
from tilelab.trace.record import Trace
from tilelab.trace.schema import Note

__all__ = ["Built", "build", "cache_key"]


@dataclass(frozen=True)
class Built:
    """A compiled variant: the printed code (None for llvm) and the binary, or what stands in for it.

    `binary` is a cubin or code object, `host` the CPU function; `binary` is empty where only the IR emulator
    can run the kernel. `function` and `trace` are there when the passes ran in this process. `notes` say what
    was slow.
    """

    target: Target
    loose: Loose
    key: str
    code: CodeText | None
    binary: bytes
    host: Any
    resources: dict[str, Any]
    notes: tuple[Note, ...]
    from_cache: bool
    function: PrimFunc | None = field(default=None, compare=False)
    trace: Trace | None = field(default=None, compare=False)


def cache_key(
    parsed: ParsedKernel, target: Target, passes: Iterable[Pass], loose: Loose, execution: str = ""
) -> str:
    """The name under which everything that this compile depends on is cached."""
    source = parsed.source
    return cache.key_of({
        "ir": parsed.script(),
        "parameters": [asdict(p) for p in parsed.parameters],
        "outputs": [parsed.outputs, parsed.returns],
        "source": [source.file if settings.get("line_info") else "", source.first_line, source.lines],
        "target": str(target),
        "host": _host(target),
        "loose": loose,
        "execution": execution,
        "passes": [(p.name, bool(p.off and settings.get(p.off))) for p in passes],
        "settings": [bool(settings.get("line_info"))],
        "versions": versions(),
        "tilelab": cache.own_sources(),
    })  # fmt: skip


def _host(target: Target) -> str:
    if target.kind != "llvm":
        return ""
    from tilelab.ir.host import host_cpu

    return host_cpu().name


def build(
    parsed: ParsedKernel,
    target: Target,
    *,
    passes: Iterable[Pass] | None = None,
    loose: Loose = (),
    notes: tuple[Note, ...] = (),
    call: str = "",
    seconds: float = 0.0,
    without_binary: str = "",
) -> Built:
    """Compile a variant, or take it from the cache.

    `without_binary` says why no binary is wanted (the IR emulator runs the kernel), or is empty. Raises
    TileError where the kernel does not fit the target or a compiler refuses it; nothing is left in the cache
    then.
    """
    if until := settings.get("until"):
        raise TileError("TL405", f"TILELAB_UNTIL={until} stops the pipeline, so there is nothing to run",
                        help="unset it, or use tilelab.trace")  # fmt: skip
    steps = pipeline_of(target) if passes is None else tuple(passes)
    key = cache_key(parsed, target, steps, loose, "ir" if without_binary else "binary")
    looked = cache.load(key)
    if looked.parts is not None and (found := _restore(looked.parts, key, target, loose, notes)) is not None:
        return found
    if looked.problem:
        notes = (*notes, Note("slow_path", looked.problem))
    f, trace = lower(parsed, target, passes=steps, loose=loose, notes=notes, call=call, seconds=seconds)
    built = _compile(f, trace, parsed, target, loose, key, notes, without_binary)
    _write_trace(trace)
    problem = cache.store(key, _parts(built))
    if problem:
        trace.steps[-1].notes += (Note("slow_path", problem),)
    return built


def _compile(
    f: PrimFunc, trace: Trace, parsed: ParsedKernel, target: Target, loose: Loose, key: str,
    notes: tuple[Note, ...], without_binary: str,
) -> Built:  # fmt: skip
    slow = tuple(n for step in trace.steps for n in step.notes if n.kind == "slow_path")
    code, binary, host, resources, more = None, b"", None, {}, ()
    if target.kind == "llvm":
        from tilelab.codegen.llvm import build as build_llvm

        host = build_llvm(f, target)
    else:
        code = print_code(f, target)
        trace.code = code.code
        if without_binary:
            more = ()
        elif target.kind == "cuda":
            binary, resources, more = _cubin(code, target, parsed)
        else:
            binary, resources, more = _code_object(code, target)
    return Built(target, loose, key, code, binary, host, resources, (*slow, *more), False, f, trace)


def _cubin(
    code: CodeText, target: Target, parsed: ParsedKernel
) -> tuple[bytes, dict[str, Any], tuple[Note, ...]]:
    from tilelab.runtime.nvrtc import build_cuda

    made = build_cuda(code.text, target.arch, lines=code.lines, file=parsed.source.file)
    found = next((r for r in made.resources if r.kernel == code.entry), None)
    resources = {"compiler": made.compiler, "seconds": made.seconds}
    notes = [Note("slow_path", made.slow_path)] if made.slow_path else []
    if found is not None:
        resources |= {
            "registers": found.registers,
            "spill_stores": found.spill_stores,
            "spill_loads": found.spill_loads,
            "stack": found.stack,
            "static_shared": found.shared,
            "shared": code.shared_bytes + found.shared,
            "warnings": list(found.warnings),
        }
        if not found.is_clean:
            spilled = found.spill_stores + found.spill_loads
            text = (
                f"{made.compiler}: {spilled} bytes of spills, {found.stack} bytes of stack; {found.warnings}"
            )
            notes.append(Note("slow_path", text))
    return made.cubin, resources, tuple(notes)


def _code_object(code: CodeText, target: Target) -> tuple[bytes, dict[str, Any], tuple[Note, ...]]:
    from tilelab.runtime.hip_build import build_hip

    made = build_hip(code.text, target.arch, allow_spills=True)
    found = next((k for k in made.resources if k.name == code.entry), None)
    resources: dict[str, Any] = {"compiler": made.tool, "seconds": made.seconds}
    notes: tuple[Note, ...] = ()
    if found is not None:
        resources |= {
            "registers": found.vgprs, "spill_stores": found.vgpr_spills, "spill_loads": found.vgpr_spills,
            "stack": found.private_bytes, "shared": found.lds_bytes + code.shared_bytes,
        }  # fmt: skip
        if found.private_bytes:
            notes = (Note("slow_path", f"{found.private_bytes} bytes a lane of registers go to memory"),)
    return made.code_object, resources, notes


# ---- to and from the cache


def _parts(built: Built) -> dict[str, bytes]:
    meta = {
        "name": built.host.name if built.host is not None else "",
        "resources": built.resources,
        "notes": [asdict(n) for n in built.notes],
    }
    parts = {"meta": json.dumps(meta).encode(), "binary": built.binary}
    if built.code is not None:
        parts["code"] = code_to_json(built.code)
    if built.host is not None:
        parts["llvm"] = built.host.llvm.encode()
    return parts


def _restore(
    parts: dict[str, bytes], key: str, target: Target, loose: Loose, notes: tuple[Note, ...]
) -> Built | None:
    """The variant that an entry holds; None when the entry is not one of ours."""
    wanted = {"meta", "binary", "llvm" if target.kind == "llvm" else "code"}
    if set(parts) != wanted:
        return None
    meta = json.loads(parts["meta"])
    host = None
    if target.kind == "llvm":
        from tilelab.codegen.llvm import reload

        host = reload(meta["name"], parts["llvm"].decode())
    kept = tuple(Note(n["kind"], n["text"], n["source"], n["data"]) for n in meta["notes"])
    extra = tuple(n for n in notes if n not in kept)
    code = code_from_json(parts["code"]) if "code" in parts else None
    return Built(target, loose, key, code, parts["binary"], host, meta["resources"], (*kept, *extra), True)


def _write_trace(trace: Trace) -> None:
    """Write the trace where the setting `trace` says."""
    folder = settings.get("trace")
    if not folder:
        return
    from pathlib import Path

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    name = f"{trace.kernel}-{trace.target.replace(':', '-')}.json"
    (place / name).write_text(json.dumps(trace.to_json()), encoding="utf-8")
