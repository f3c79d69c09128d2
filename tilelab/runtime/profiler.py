"""The profiler of a kernel: made-up inputs, timing, and comparison with a reference."""

from __future__ import annotations

import enum
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilelab.errors import TileError
from tilelab.runtime.arguments import numpy_dtype
from tilelab.runtime.timing import do_bench

__all__ = ["Profiler", "TensorSupplyType", "supply"]


_EMULATORS = ("ir", "gfx942")


class TensorSupplyType(enum.Enum):
    """How made-up inputs are filled."""

    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


def supply(shape: Sequence[int], dtype: str, kind: TensorSupplyType, seed: int = 0) -> np.ndarray:
    """A made-up NumPy array: small integers, numbers in [-1, 1), normal deviates, zeros or ones."""
    random = np.random.default_rng(seed)
    if kind is TensorSupplyType.Auto:
        kind = TensorSupplyType.Normal if "float" in dtype else TensorSupplyType.Integer
    if kind is TensorSupplyType.Zero:
        values: Any = np.zeros(shape)
    elif kind is TensorSupplyType.One:
        values = np.ones(shape)
    elif kind is TensorSupplyType.Uniform:
        values = random.uniform(-1, 1, shape)
    elif kind is TensorSupplyType.Integer:
        low = 0 if dtype.startswith("uint") or dtype == "bool" else -2
        values = random.integers(low, 3 if dtype != "bool" else 2, shape)
    else:
        values = random.standard_normal(shape)
    return np.asarray(values).astype(numpy_dtype(dtype))


class Profiler:
    """Times a kernel and compares it with a reference, on inputs that it makes up.

    `kernel` offers `name`, `parsed.parameters`, `target`, `execution`, `note` and calls.
    """

    def __init__(self, kernel: Any, supply_type: TensorSupplyType = TensorSupplyType.Auto) -> None:
        self.kernel = kernel
        self.supply_type = supply_type

    def inputs(self, sizes: Mapping[str, int] | None = None) -> list[Any]:
        """Made-up inputs where the kernel runs; `sizes` gives the dynamic ones. Raises TL502 for a size left
        open.
        """
        out: list[Any] = []
        for seed, p in enumerate(p for p in self.kernel.parsed.parameters if not p.output):
            if p.kind == "scalar":
                out.append(1.0 if "float" in p.dtype else 1)
                continue
            shape = [n if isinstance(n, int) else (sizes or {}).get(n) for n in p.shape]
            if None in shape:
                raise TileError(
                    "TL502",
                    f"{p.name} has the shape ({', '.join(map(str, p.shape))}), with sizes left open",
                    help="give input_tensors=[…] or sizes={'M': 1024}",
                )
            out.append(
                self._placed(supply([n for n in shape if n is not None], p.dtype, self.supply_type, seed))
            )
        return out

    def _placed(self, array: np.ndarray) -> Any:
        """The array as a torch tensor on the kernel's device when torch is loaded: references use torch."""
        torch = sys.modules.get("torch")
        if torch is None:
            return array
        device = "cuda" if self.kernel.execution.kind in ("cuda", "hip") else "cpu"
        kind = array.dtype.name
        if hasattr(np, kind):
            return torch.from_numpy(array).to(device)
        return torch.from_numpy(array.astype(np.float32)).to(device).to(getattr(torch, kind))

    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """Call the kernel (or `func`) once on made-up inputs."""
        return (func or self.kernel)(*self.inputs())

    def do_bench(
        self,
        func: Callable[..., Any] | None = None,
        warmup: float = 25,
        rep: float = 100,
        input_tensors: Sequence[Any] | None = None,
        sizes: Mapping[str, int] | None = None,
        **options: Any,
    ) -> float | list[float]:
        """Milliseconds of a call of the kernel (or of `func` on the same inputs).

        Of a kernel that runs in an emulator they are the emulator's: a warning and the kernel's notes say so.
        """
        args = list(input_tensors) if input_tensors is not None else self.inputs(sizes)
        called = func or self.kernel
        if called is self.kernel and self.kernel.execution.kind in _EMULATORS:
            self._say_emulated()
        return do_bench(lambda: called(*args), warmup, rep, **options)

    def _say_emulated(self) -> None:
        where = self.kernel.execution
        text = f"do_bench measured the emulator, not a GPU: {self.kernel.name} ran {where.doc}"
        text += f" ({where.reason})" if where.reason else ""
        self.kernel.note(text)
        warnings.warn(text, RuntimeWarning, stacklevel=3)

    def assert_allclose(
        self,
        reference: Callable[..., Any],
        rtol: float = 1e-2,
        atol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
        input_tensors: Sequence[Any] | None = None,
    ) -> None:
        """Raise AssertionError when more than the given part of the results lies outside the tolerances."""
        args = list(input_tensors) if input_tensors is not None else self.inputs()
        found, wanted = _many(self.kernel(*args)), _many(reference(*args))
        for index, (a, b) in enumerate(zip(found, wanted, strict=True)):
            x, y = _float64(a), _float64(b)
            off = ~np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)
            if off.mean() > max_mismatched_ratio:
                worst = np.nanmax(np.abs(x - y))
                raise AssertionError(
                    f"output {index} of {self.kernel.name}: {off.sum()} of {off.size} elements are off "
                    f"by more than rtol={rtol}, atol={atol}; the largest difference is {worst:.3g}"
                )


def _many(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def _float64(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):
        return value.detach().cpu().double().numpy()
    return np.asarray(value).astype(np.float64)
