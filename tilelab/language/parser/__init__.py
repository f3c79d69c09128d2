"""Reading kernels: Python source to tile IR, every statement with its file, line and column."""

from tilelab.language.parser.entry import call_macro, parse_eager, parse_lazy, parse_prim_func
from tilelab.language.parser.sizes import tensor_types
from tilelab.language.parser.source import style_of
from tilelab.language.specs import Parameter, ParsedKernel, TensorSpec

__all__ = [
    "Parameter", "ParsedKernel", "TensorSpec", "call_macro", "parse_eager", "parse_lazy", "parse_prim_func",
    "style_of", "tensor_types",
]  # fmt: skip
