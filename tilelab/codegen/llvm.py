"""From IR at stage `device` to a CPU function, through TVM's LLVM: a short list of TVM's passes of our own choosing.

What the pipeline shows is what is compiled: the passes here only turn loops marked vectorized and unrolled into vectors
and straight-line code, parameters into pointers with their checks, and grid loops into calls of TVM's thread pool.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tvm
from tvm import tirx
from tvm.tirx import transform as passes

from tilelab.errors import TileError
from tilelab.hardware.model import bits
from tilelab.ir.host import host_cpu
from tilelab.ir.nodes import AllocBuffer, PrimFunc, Var, dtype_of
from tilelab.ir.rewrite import substitute
from tilelab.ir.statements import each_statement
from tilelab.targets import Target
from tilelab.trace.schema import Line

__all__ = ["LLVMModule", "build", "set_threads", "threads"]

# TVM starts half as many threads as an x86 machine has processors (it assumes two a core) unless this says otherwise,
# and reads it when its pool is first used.
os.environ.setdefault("TVM_NUM_THREADS", str(os.cpu_count() or 1))

_LOCATION = re.compile(r"!dbg !(\d+)")
_LOCATIONS = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)", re.MULTILINE)


def threads() -> int:
    """Threads that share the blocks of a kernel."""
    return int(tvm.get_global_func("runtime.NumThreads")())


def set_threads(count: int) -> int:
    """Share blocks among `count` threads from now on, for all kernels; gives the number really used.

    No more than the processors that TVM's pool was started for are used.
    """
    tvm.get_global_func("runtime.config_threadpool")(1, count)
    return threads()


@dataclass(frozen=True)
class LLVMModule:
    """A compiled CPU function: call it with tensors and scalars (DLPack, torch or NumPy) in the parameters' order.

    The callable checks rank, dtype, shape, strides and device, and raises ValueError or TypeError naming the argument.
    """

    name: str
    module: Any

    @cached_property
    def callable(self) -> Callable[..., None]:
        return self.module[self.name]

    def __call__(self, *args: Any) -> None:
        self.callable(*args)

    @cached_property
    def llvm(self) -> str:
        """The optimised LLVM IR."""
        return str(self.module.inspect_source("ll"))

    @cached_property
    def assembly(self) -> str:
        """The machine code as assembly text."""
        return str(self.module.inspect_source("asm"))

    @property
    def lines(self) -> tuple[Line, ...]:
        """The LLVM IR as lines with the kernel's source lines where debug locations name them."""
        table = {number: int(line) for number, line in _LOCATIONS.findall(self.llvm)}
        out = []
        for text in self.llvm.splitlines():
            found = _LOCATION.search(text)
            line = table.get(found[1], 0) if found else 0
            out.append(Line(text, (line, line) if line else None))
        return tuple(out)


def _target(cpu: str) -> Any:
    # Narrower chips than the host's are named by generic levels, so that a test can ask for them anywhere.
    return tvm.target.Target({"kind": "llvm", "mcpu": cpu})


def _with_storage(f: PrimFunc) -> PrimFunc:
    """The function with allocations in plain memory, and parameters aligned to their elements only.

    Scope global makes TVM put arrays below 1024 bytes on the stack, where LLVM turns them into registers; larger ones
    come from its pool. A parameter may be any slice of a tensor, so nothing more than its dtype's alignment holds.
    """
    mapping: dict[Var, Var] = {}
    for node in each_statement(f.body):
        if isinstance(node, AllocBuffer) and str(node.buffer.scope()) != "global":
            old = node.buffer
            mapping[old] = tirx.decl_buffer(
                list(old.shape), dtype_of(old), name=str(old.name), scope="global"
            )
    params = []
    for old in f.params:
        if tirx.is_buffer_var(old):
            mapping[old] = tirx.decl_buffer(
                list(old.shape), dtype_of(old), name=str(old.name), strides=list(old.strides) or None,
                data_alignment=max(1, bits(dtype_of(old)) // 8),
            )  # fmt: skip
        params.append(mapping.get(old, old))
    plain = tirx.PrimFunc(params, substitute(f.body, mapping))
    return plain.with_attr({"global_symbol": str(f.attrs["global_symbol"]), "tirx.noalias": True})


def _passes(target: Any) -> tuple[Any, ...]:
    return (
        passes.BindTarget(target.with_host(target) if hasattr(target, "with_host") else target),
        passes.FlattenBuffer(),
        passes.BF16ComputeLegalize(),
        passes.NarrowDataType(32),
        passes.VectorizeLoop(True),
        passes.UnrollLoop(),
        passes.StmtSimplify(),
        passes.FP8ComputeLegalize(),
        passes.AnnotateEntryFunc(),
        passes.MakePackedAPI(),
        passes.FP8StorageLegalize(),
        passes.BF16StorageLegalize(),
        passes.LowerTVMBuiltin(),
        passes.LowerIntrin(),
    )


def build(f: PrimFunc, target: Target) -> LLVMModule:
    """The function at stage `device`, compiled for the CPU of this machine. Raises TL404 when LLVM refuses it."""
    if target.kind != "llvm":
        raise TileError("TL404", f"LLVM here compiles for the CPU, not for {target}")
    name = str(f.attrs["global_symbol"])
    machine = _target(host_cpu().name)
    module = tvm.IRModule({name: _with_storage(f)})
    try:
        for step in _passes(machine):
            module = step(module)
        built = tvm.get_global_func("target.build.llvm")(module, machine)
    except (tvm.error.TVMError, ValueError, TypeError, RuntimeError) as error:
        raise TileError(
            "TL404", f"{name} could not be compiled: {str(error).strip().splitlines()[-1]}"
        ) from error
    return LLVMModule(name, built)
