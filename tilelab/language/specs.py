"""What goes into reading a kernel and what comes out: tensor specifications and the parsed kernel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from tilelab.errors import TileError
from tilelab.language.lazy import LazyModule
from tilelab.trace.schema import Source

if TYPE_CHECKING:
    from tilelab.ir import build as b
    from tilelab.ir import text as ir_text
else:
    b = LazyModule("tilelab.ir.build")
    ir_text = LazyModule("tilelab.ir.text")

__all__ = ["Parameter", "ParsedKernel", "TensorSpec"]


@dataclass(frozen=True)
class TensorSpec:
    """What is known of a tensor argument: shape and strides in elements, None where known only at the launch.

    No strides means contiguous.
    """

    shape: tuple[int | None, ...]
    dtype: str
    strides: tuple[int | None, ...] | None = None

    def __post_init__(self) -> None:
        if any(n is not None and n >= 2**31 for n in self.shape):
            raise TileError(
                "TL305",
                f"a tensor of shape {self.shape}: sizes are counted in 32 bits",
                help="give the kernel a part of the tensor at a time",
            )


@dataclass(frozen=True)
class Parameter:
    """A parameter of the kernel: sizes and strides are numbers, or the text of an expression of size
    variables.

    `output` says that the caller does not give it: the run time makes it.
    """

    name: str
    kind: Literal["tensor", "scalar"]
    dtype: str
    shape: tuple[int | str, ...] = ()
    strides: tuple[int | str, ...] | None = None
    output: bool = False


@dataclass(frozen=True)
class ParsedKernel:
    """A kernel as tile IR.

    `returns` are indices of parameters in the order of the `return` statement, and `outputs` those that the
    run time makes; `single` says that one tensor is returned bare. `constants` are the Python values of
    arguments, `captured` the globals and closure values that the source reads: both belong to the key of a
    cache. `ignored` lists what the source asks for without effect.
    """

    name: str
    func: Any
    source: Source
    parameters: tuple[Parameter, ...]
    outputs: tuple[int, ...] = ()
    returns: tuple[int, ...] = ()
    single: bool = True
    constants: tuple[tuple[str, Any], ...] = ()
    captured: tuple[tuple[str, Any], ...] = field(default=(), compare=False)
    ignored: tuple[str, ...] = ()

    def script(self) -> str:
        """The IR as text."""
        return ir_text.print_node(self.func)

    def with_outputs(self, out_idx: int | list[int] | tuple[int, ...] | None) -> ParsedKernel:
        """The kernel with the parameters of these indices (negative ones count from the end) made by the
        run time."""
        if out_idx is None:
            return self
        count = len(self.parameters)
        listed = [out_idx] if isinstance(out_idx, int) else list(out_idx)
        for index in listed:
            if not -count <= index < count or self.parameters[index].kind != "tensor":
                raise TileError(
                    "TL105",
                    f"out_idx={out_idx}: {self.name} has no tensor parameter {index}",
                    help="parameters: " + ", ".join(p.name for p in self.parameters),
                )
        outputs = tuple(index % count for index in listed)
        parameters = tuple(
            replace(p, output=True) if i in outputs else p for i, p in enumerate(self.parameters)
        )
        return replace(
            self,
            func=b.with_attrs(self.func, outputs=list(outputs)),
            parameters=parameters,
            outputs=outputs,
            returns=outputs,
            single=len(outputs) == 1,
        )
