"""Writing down an ONNX graph as if it were NumPy: tensors with operators that add nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Graph:
    """The nodes and constants of a graph, or of the body of a loop, in the making.

    Attributes
    ----------
    nodes, constants : list
        For ``onnx.helper.make_graph``.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._names: dict[tuple[Any, ...], str] = {}

    def input(self, name: str) -> Tensor:
        """Return an input as a tensor."""
        return Tensor(self, name)

    def constant(self, value: Any) -> Tensor:
        """Return a constant; floats are float64. Equal ones are stored once."""
        from onnx import numpy_helper

        array = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        key = (array.dtype.str, array.shape, array.tobytes() if array.dtype.kind != "O" else tuple(array.tolist()))
        if key not in self._names:
            self._names[key] = f"{self.prefix}constant_{len(self._names)}"
            self.constants.append(numpy_helper.from_array(array, self._names[key]))
        return Tensor(self, self._names[key])

    def node(self, op: str, *inputs: Any, domain: str = "", output: str = "", **attributes: Any) -> Tensor:
        """Add a node with one output and return that; inputs are tensors, or numbers and arrays that become constants."""
        from onnx import helper

        names = [(x if isinstance(x, Tensor) else self.constant(x)).name for x in inputs]
        name = output or f"{self.prefix}{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, names, [name], domain=domain, **attributes))
        return Tensor(self, name)


class Tensor:
    """An output of a node of a graph."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph = graph
        self.name = name

    def __add__(self, other: Any) -> Tensor:
        return self.graph.node("Add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return self.graph.node("Add", other, self)

    def __sub__(self, other: Any) -> Tensor:
        return self.graph.node("Sub", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return self.graph.node("Sub", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return self.graph.node("Mul", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return self.graph.node("Mul", other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return self.graph.node("Div", self, other)

    def __abs__(self) -> Tensor:
        return self.graph.node("Abs", self)

    def __neg__(self) -> Tensor:
        return self.graph.node("Neg", self)

    def cast(self, dtype: Any) -> Tensor:
        """Return the tensor in a NumPy dtype."""
        from onnx import helper

        return self.graph.node("Cast", self, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def where(condition: Tensor, x: Any, y: Any) -> Tensor:
    """Return x where the condition holds, else y."""
    return condition.graph.node("Where", condition, x, y)


def columns(n: int) -> NDArray[np.int64]:
    """Return the numbers of n columns, shape (1, n)."""
    return np.arange(n, dtype=np.int64)[None, :]
