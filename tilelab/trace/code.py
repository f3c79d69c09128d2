"""What a printer hands over: the text, its lines with their source, and all that a launch has to know."""

from __future__ import annotations

from dataclasses import dataclass

from tilelab.trace.schema import Code, Line

__all__ = ["CodeText", "Parameter", "TensorMap"]


@dataclass(frozen=True)
class TensorMap:
    """A tensor map that the launch encodes: a global tensor, the box that one instruction moves, the swizzle.

    `shape` and `strides` are outermost first, in elements, as Python expressions of the kernel's scalars;
    `box` is outermost first too, and `swizzle_bytes` is 0, 32, 64 or 128.
    """

    buffer: str
    dtype: str
    shape: tuple[str, ...]
    strides: tuple[str, ...]
    box: tuple[int, ...]
    swizzle_bytes: int


@dataclass(frozen=True)
class Parameter:
    """One parameter of the printed kernel, in order; kind is buffer, scalar or tensor_map.

    `index` is the position among the function's own parameters, None for what the launch computes: tensor
    maps, and extents or strides that are read off the arguments (found by `name`).
    """

    kind: str
    name: str
    dtype: str
    index: int | None = None
    tensor_map: TensorMap | None = None


@dataclass(frozen=True)
class CodeText:
    """A printed kernel.

    `grid` holds the extents of x, y and z as Python expressions of the kernel's scalars, `block` the threads;
    `buffers` names the function's buffer parameters with their positions, also those that only tensor maps
    reach; `shared_bytes` is the dynamic shared memory (0 where the dialect declares it in the text).
    """

    language: str
    text: str
    lines: tuple[Line, ...]
    entry: str
    parameters: tuple[Parameter, ...]
    grid: tuple[str, str, str]
    block: tuple[int, int, int]
    shared_bytes: int
    buffers: tuple[tuple[str, int], ...] = ()
    helpers: tuple[str, ...] = ()

    @property
    def code(self) -> Code:
        """The lines as a Trace holds them."""
        return Code(self.language, self.lines)
