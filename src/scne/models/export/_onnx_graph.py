"""A graph of ONNX nodes under construction."""

from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto, ValueInfoProto

# A value that a node computed or that goes in, by its name; or a constant.
Value = str | float | int | np.ndarray

# The sets of operators are fixed, not the newest that the installed onnx knows: the same model gives the same bytes
# everywhere, and runtimes since 2024 read them.
OPSET, ML_OPSET, IR_VERSION = 21, 4, 10


def import_onnx() -> ModuleType:
    """The package onnx, or a sentence about where to get it."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError(
            "An export to ONNX needs the package onnx, which is not installed: pip install onnx onnxruntime"
        ) from error
    return onnx


class GraphBuilder:
    """Nodes and constants in the order in which they are asked for; no value inside has the name of an in- or output.

    Examples
    --------
    >>> graph = GraphBuilder(["X", "y"])
    >>> doubled = graph("Mul", "X", 2.0)
    >>> doubled, [node.op_type for node in graph.nodes], [constant.name for constant in graph.constants]
    ('value 2', ['Mul'], ['value 1'])
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self._onnx = import_onnx()
        self._taken = set(taken)
        self._count = 0
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def __call__(self, operator: str, *inputs: Value, domain: str = "", output: str = "", **attributes: object) -> str:
        """Add a node and name its value; floats become float64 constants, whole numbers int64 ones."""
        names = [value if isinstance(value, str) else self._constant(np.asarray(value)) for value in inputs]
        result = output or self._name()
        self.nodes.append(self._onnx.helper.make_node(operator, names, [result], domain=domain, **attributes))
        return result

    def cast(self, value: Value, dtype: DTypeLike) -> str:
        """A value in another type."""
        return self("Cast", value, to=self.type_of(dtype))

    def tensor(self, values: np.ndarray) -> "TensorProto":
        """An array as an attribute of a node."""
        tensor: TensorProto = self._onnx.numpy_helper.from_array(values)
        return tensor

    def type_of(self, dtype: DTypeLike) -> int:
        """ONNX's number of a NumPy type."""
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def declared(self, name: str, dtype: np.dtype | None, *width: int) -> "ValueInfoProto":
        """An input or output of shape (N, width) or (N,); of text without a type."""
        type_ = self._onnx.TensorProto.STRING if dtype is None else self.type_of(dtype)
        declared: ValueInfoProto = self._onnx.helper.make_tensor_value_info(name, type_, ["N", *width])
        return declared

    def _constant(self, values: np.ndarray) -> str:
        key = (values.dtype.str, values.shape, values.tobytes())
        if key not in self._known:
            self._known[key] = self._name()
            self.constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(values), self._known[key]))
        return self._known[key]

    def _name(self) -> str:
        while True:
            self._count += 1
            name = f"value {self._count}"
            if name not in self._taken:
                return name
