"""A test kernel with its arguments, its reference and how near a result must come to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from tilelab.language.parser import ParsedKernel, TensorSpec, parse_eager, parse_lazy

__all__ = ["TARGETS", "KernelCase", "floats", "integers"]

TARGETS = ("llvm", "cuda:sm_80", "hip:gfx942")
_NUMPY = {"bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn}

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class KernelCase:
    """A kernel and what it must compute.

    `function` is a kernel in the eager style, or with `lazy` the factory of a T.prim_func, whose outputs are
    the parameters `out_idx`. `inputs` makes the arguments anew, tensors only; `constants` are the other ones.
    `reference` takes the arrays and gives the values that the kernel returns, computed in float64.
    `tolerance` bounds ‖result - reference‖ / ‖reference‖ for each.
    """

    name: str
    function: Callable[..., Any]
    inputs: Callable[[], Arrays]
    reference: Callable[..., Arrays]
    tolerance: float
    constants: Mapping[str, Any] = field(default_factory=dict)
    targets: tuple[str, ...] = TARGETS
    lazy: bool = False
    out_idx: tuple[int, ...] = (-1,)

    def build(self) -> ParsedKernel:
        """The kernel as tile IR for the shapes of `inputs`."""
        if self.lazy:
            return parse_lazy(self.function, kwargs=self.constants, out_idx=list(self.out_idx))
        names = self.function.__code__.co_varnames
        tensors = {n: TensorSpec(x.shape, x.dtype.name) for n, x in zip(names, self.inputs(), strict=False)}
        return parse_eager(self.function, {**tensors, **self.constants})

    def expected(self) -> Arrays:
        """The values that the kernel returns for `inputs`."""
        return self.reference(*self.inputs())

    def error(self, results: Arrays) -> float:
        """The greatest relative error of the results against `expected`."""
        worst = 0.0
        for result, right in zip(results, self.expected(), strict=True):
            wrong = np.linalg.norm(result.astype(np.float64) - right.astype(np.float64))
            worst = max(worst, float(wrong / max(np.linalg.norm(right.astype(np.float64)), 1e-30)))
        return worst

    def __str__(self) -> str:
        return self.name


def floats(*shape: int, dtype: str = "float16", seed: int = 0) -> np.ndarray:
    """Normally distributed numbers of the dtype."""
    values = np.random.default_rng(seed).standard_normal(shape)
    return values.astype(_NUMPY.get(dtype, dtype))


def integers(*shape: int, low: int, high: int, dtype: str = "int32", seed: int = 0) -> np.ndarray:
    """Whole numbers from low to high - 1."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)
