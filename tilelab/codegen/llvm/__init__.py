"""From IR at stage `device` to a CPU function, through TVM's LLVM and a short list of TVM's own passes.

What the pipeline shows is what is compiled: the passes here only turn loops marked vectorized and unrolled
into vectors and straight-line code, parameters into pointers with their checks, and the grid's loop into a
call of TVM's thread pool.
"""

# TVM's own classes show the type checker neither their fields nor what they accept.
# pyright: reportReturnType=false
from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.tirx import transform as passes

from tilelab.codegen.llvm.float8 import spell_out_float8
from tilelab.errors import TileError
from tilelab.hardware.model import bits
from tilelab.ir.host import host_cpu
from tilelab.ir.nodes import AllocBuffer, PrimFunc, TileCall, Var, dtype_of
from tilelab.ir.rewrite import rewrite, substitute
from tilelab.ir.statements import each_statement
from tilelab.ir.tile_ops import op_of, operand
from tilelab.targets import Target
from tilelab.trace.schema import Line

__all__ = ["LLVMModule", "build", "reload", "set_threads", "threads"]

# Unless this says otherwise TVM starts half as many threads as an x86 machine has processors, since it
# assumes two a core; it reads it when its pool is first used.
os.environ.setdefault("TVM_NUM_THREADS", str(os.cpu_count() or 1))


def threads() -> int:
    """Threads that share the blocks of a kernel."""
    return int(tvm.get_global_func("runtime.NumThreads")())


def set_threads(count: int) -> int:
    """Share blocks among `count` threads from now on, for all kernels; gives the number really used.

    No more than the processors that TVM's pool was started for are used.
    """
    tvm.get_global_func("runtime.config_threadpool")(1, count)
    return threads()


def _compact_if_empty(arg: Any) -> Any:
    """An empty torch tensor with strides from its extents: torch counts an extent of 0 as 1 there."""
    if 0 not in getattr(arg, "shape", ()) or not hasattr(arg, "as_strided"):
        return arg
    strides = [prod(arg.shape[axis + 1 :]) for axis in range(len(arg.shape))]
    return arg.as_strided(arg.shape, strides)


@dataclass(frozen=True)
class LLVMModule:
    """A compiled CPU function: call it with tensors (DLPack, torch, NumPy) and scalars, in order.

    It checks rank, dtype, shape, strides and device; ValueError or TypeError name the argument that is wrong.
    `callable` is the same without the mending of empty tensors.
    """

    name: str
    module: Any

    @cached_property
    def callable(self) -> Callable[..., None]:
        return self.module[self.name]

    def __call__(self, *args: Any) -> None:
        self.callable(*(_compact_if_empty(arg) for arg in args))

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
        """The LLVM IR as lines; TVM gives it no source lines."""
        return tuple(Line(text) for text in self.llvm.splitlines())


def _with_storage(f: PrimFunc) -> PrimFunc:
    """The function with allocations in plain memory, and parameters aligned to their elements only.

    Scope global makes TVM put arrays below 1024 bytes on the stack, where LLVM turns them into registers;
    larger ones come from its pool. A parameter may be any slice of a tensor, so nothing more than its dtype's
    alignment holds.
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
    plain = tirx.PrimFunc(params, rewrite(substitute(f.body, mapping), (TileCall, _printed)))
    return plain.with_attr({"global_symbol": str(f.attrs["global_symbol"]), "tirx.noalias": True})


def _printed(call: TileCall) -> Any:
    """Printing one element through the C library."""
    if op_of(call).name != "print":
        return None
    value, message = operand(call, "value"), str(call.config.get("message", "") or "").replace("%", "%%")
    is_float = "float" in dtype_of(value)
    form = f"{message}{': ' if message else ''}{'%g' if is_float else '%lld'}\n"
    wide = value.astype("float64" if is_float else "int64")
    return tirx.Evaluate(tirx.call_extern("int32", "printf", form, wide), call.span)


def _passes(target: Any) -> tuple[Any, ...]:
    return (
        passes.BindTarget(target.with_host(target)),
        passes.FlattenBuffer(),
        passes.BF16ComputeLegalize(),
        passes.NarrowDataType(32),
        passes.VectorizeLoop(True),
        passes.UnrollLoop(),
        passes.StmtSimplify(),
        passes.AnnotateEntryFunc(),
        passes.MakePackedAPI(),
        passes.FP8StorageLegalize(),
        passes.BF16StorageLegalize(),
        passes.LowerTVMBuiltin(),
        passes.LowerIntrin(),
    )


def build(f: PrimFunc, target: Target) -> LLVMModule:
    """The function at stage `device`, compiled for this machine's CPU. Raises TL404 when LLVM refuses it."""
    if target.kind != "llvm":
        raise TileError("TL404", f"LLVM here compiles for the CPU, not for {target}")
    name = str(f.attrs["global_symbol"])
    machine = tvm.target.Target({"kind": "llvm", "mcpu": host_cpu().name})
    module = tvm.IRModule({name: _with_storage(spell_out_float8(f))})
    try:
        for step in _passes(machine):
            module = step(module)
        built = tvm.get_global_func("target.build.llvm")(module, machine)
    except (ValueError, TypeError, RuntimeError) as error:
        raise TileError(
            "TL404", f"{name} could not be compiled: {str(error).strip().splitlines()[-1]}"
        ) from error
    return LLVMModule(name, built)


def reload(name: str, llvm: str) -> LLVMModule:
    """The function from LLVM IR that an earlier build of it gave. Raises TL404 when LLVM refuses the text."""
    with TemporaryDirectory(prefix="tilelab-llvm-") as folder:
        path = Path(folder) / "kernel.ll"
        path.write_text(llvm, encoding="utf-8")
        try:
            module = LLVMModule(name, tvm_ffi.load_module(str(path)))
        except (ValueError, TypeError, RuntimeError) as error:
            raise TileError("TL404", f"{name}: LLVM cannot read what it wrote: {error}") from error
    # The text as it was first written: LLVM would now name the temporary file in it.
    module.__dict__["llvm"] = llvm
    return module
