"""The hooks into IPython: a Trace shows itself at the end of a cell, and `%%tilelab` shows the cell's kernel.

`import tilelab` calls `install` in a notebook, so nothing of tilelab is imported here until something is
shown: the formatter is registered by the type's name, and the rest is loaded by `_load`.
"""

from __future__ import annotations

import ast
import importlib
from typing import Any

__all__ = ["MAGIC", "TRACE_TYPE", "install", "load_ipython_extension", "unload_ipython_extension"]

# Module and name of the object that a pipeline run leaves behind; it offers `payload() -> TracePayload`.
TRACE_TYPE = ("tilelab.trace.record", "Trace")
MAGIC = "tilelab"


def install(ipython: Any = None) -> None:
    """Register the display of a Trace and the `%%tilelab` magic with `ipython`, or with the running one.

    Outside IPython this does nothing: there is no display to register with.
    """
    if ipython is None:
        ipython = _running()
    if ipython is None:
        return
    formatter = ipython.display_formatter.mimebundle_formatter
    formatter.for_type_by_name(*TRACE_TYPE, _format_trace)
    ipython.register_magic_function(lambda line, cell: _cell_magic(ipython, line, cell), "cell", MAGIC)


def load_ipython_extension(ipython: Any) -> None:
    """What `%load_ext tilelab_viz` calls."""
    install(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """What `%unload_ext tilelab_viz` calls: the Trace shows as text again."""
    formatter = ipython.display_formatter.mimebundle_formatter
    for key in list(formatter.deferred_printers):
        if key == TRACE_TYPE:
            del formatter.deferred_printers[key]
    for kind in list(formatter.type_printers):
        if (kind.__module__, kind.__name__) == TRACE_TYPE:
            del formatter.type_printers[kind]
    ipython.magics_manager.magics["cell"].pop(MAGIC, None)


def _running() -> Any:
    try:
        get_ipython = _load("IPython").get_ipython
    except ImportError:
        return None
    return get_ipython()


def _format_trace(
    trace: Any, include: Any = None, exclude: Any = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    return _load("tilelab_viz.bundle").display_data(trace.payload())


def _load(module: str) -> Any:
    return importlib.import_module(module)


def _nothing_to_show(message: str, help: str) -> Exception:
    return _load("tilelab.errors").TileError("TL406", message, help=help)


def _cell_magic(ipython: Any, line: str, cell: str) -> None:
    """Run the cell, then show the trace of the kernel that it defined or called last.

    The line may name a target, as in `%%tilelab cuda:sm_90a`.
    """
    ipython.run_cell(cell).raise_error()
    kernel = _last_kernel(ipython.transform_cell(cell), ipython.user_ns)
    if kernel is None:
        raise _nothing_to_show(
            "the cell neither defines nor calls a kernel",
            "decorate a function with @tilelang.jit in the cell, or call one that was decorated before",
        )
    trace_of = getattr(_load("tilelab"), "trace_of", None)
    if trace_of is None:
        raise _nothing_to_show("this tilelab has no trace_of", "install tilelab and tilelab_viz together")
    # Without arguments trace_of takes those of the kernel's latest call.
    target = line.strip()
    trace = trace_of(kernel, target=target) if target else trace_of(kernel)
    _load("IPython.display").display(trace)


def _last_kernel(cell: str, names: dict[str, Any]) -> Any:
    """The kernel whose definition or call stands last in the cell."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(cell)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.append((node.lineno, node.name))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.append((node.lineno, node.func.id))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append((node.lineno, node.id))
    kernels = [names[name] for _, name in sorted(found) if _is_kernel(names.get(name))]
    return kernels[-1] if kernels else None


def _is_kernel(value: Any) -> bool:
    """Whether the value is one of tilelab's callables; their classes live in the package of that name."""
    return (
        callable(value) and not isinstance(value, type) and type(value).__module__.split(".")[0] == "tilelab"
    )
