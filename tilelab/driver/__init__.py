"""The driver: from a Python function to a running kernel, through parser, passes, printers, cache and run
time.
"""

from __future__ import annotations

from tilelab.driver.compiling import compile, compile_parsed
from tilelab.driver.jit import JitFunction, jit
from tilelab.driver.kernel import Kernel
from tilelab.driver.lowering import pipeline
from tilelab.driver.pass_configs import PassConfigKey
from tilelab.driver.tracing import trace, trace_of

__all__ = [
    "JitFunction", "Kernel", "PassConfigKey", "compile", "compile_parsed", "jit", "pipeline", "trace",
    "trace_of",
]  # fmt: skip
