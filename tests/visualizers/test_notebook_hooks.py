"""The hooks into IPython, with stand-ins for the compiler's types."""

from __future__ import annotations

import sys
import types

import pytest

from tilelab.errors import TileError
from tilelab_viz import MIME, install, load_ipython_extension, unload_ipython_extension
from tilelab_viz.notebook import TRACE_TYPE

InteractiveShell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell


@pytest.fixture
def shell():
    made = InteractiveShell()
    yield made
    made.restore_sys_module_state()
    made.history_manager.end_session()


@pytest.fixture
def trace_object(matmul):
    """An object of a class with the name of the compiler's Trace."""
    module, name = TRACE_TYPE
    kind = type(name, (), {"__module__": module, "payload": lambda self: matmul})
    return kind()


@pytest.fixture
def compiler(monkeypatch, trace_object):
    """A stand-in for `tilelab` that records what is asked of it; `kernel` is one of its callables."""
    asked = []
    module = types.ModuleType("tilelab")

    def trace_of(kernel, *args, **options):
        asked.append((kernel, args, options))
        return trace_object

    module.trace_of = trace_of
    monkeypatch.setitem(sys.modules, "tilelab", module)
    kernel_type = type("JitKernel", (), {"__module__": "tilelab.driver", "__call__": lambda self, *a: None})
    return types.SimpleNamespace(asked=asked, kernel_type=kernel_type, module=module)


@pytest.fixture
def shown(monkeypatch):
    """What the magic displays."""
    import IPython.display

    objects = []
    monkeypatch.setattr(IPython.display, "display", objects.append)
    return objects


def test_a_trace_shows_itself_after_load_ext(shell, trace_object):
    load_ipython_extension(shell)
    data, metadata = shell.display_formatter.format(trace_object)
    assert {MIME, "text/html", "image/png"} <= set(data)
    assert metadata["image/png"]["width"] == 960


def test_unloading_gives_the_plain_display_back(shell, trace_object):
    install(shell)
    shell.display_formatter.format(trace_object)
    unload_ipython_extension(shell)
    assert MIME not in shell.display_formatter.format(trace_object)[0]
    assert "tilelab" not in shell.magics_manager.magics["cell"]


def test_outside_ipython_install_does_nothing():
    install()


def test_the_magic_shows_the_kernel_that_the_cell_calls(shell, compiler, shown, trace_object):
    install(shell)
    first, second = compiler.kernel_type(), compiler.kernel_type()
    shell.user_ns.update(first=first, second=second)
    shell.run_cell_magic("tilelab", "cuda:sm_90a", "x = 1\nsecond(x)\n")
    assert compiler.asked == [(second, (), {"target": "cuda:sm_90a"})]
    assert shown == [trace_object]
    assert shell.user_ns["x"] == 1


def test_the_magic_takes_the_kernel_that_stands_last(shell, compiler, shown):
    install(shell)
    first, second = compiler.kernel_type(), compiler.kernel_type()
    shell.user_ns.update(make=[first, second])
    shell.run_cell_magic("tilelab", "", "a = make[0]\nb = make[1]\na(1)\n")
    assert compiler.asked == [(first, (), {})]


def test_the_magic_without_a_kernel_says_so(shell, compiler, shown):
    install(shell)
    with pytest.raises(TileError) as caught:
        shell.run_cell_magic("tilelab", "", "x = 1")
    assert caught.value.code == "TL406"
    assert shown == []


def test_an_error_in_the_cell_is_the_error_shown(shell, compiler, shown):
    install(shell)
    with pytest.raises(ZeroDivisionError):
        shell.run_cell_magic("tilelab", "", "1 / 0")
    assert compiler.asked == []


def test_a_compiler_without_trace_of_is_named(shell, compiler, shown):
    install(shell)
    del compiler.module.trace_of
    shell.user_ns["kernel"] = compiler.kernel_type()
    with pytest.raises(TileError) as caught:
        shell.run_cell_magic("tilelab", "", "kernel()")
    assert "trace_of" in caught.value.message
