"""8-bit arithmetic of ONNX models: products with constant weights become products of integers.

The dynamic quantisation of onnxruntime rounds by the largest value of a batch, so that a vector
depends on the other texts of its batch. Here the state of each token has a scale of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.onnx_messages import Model, Node, read_array, write_array

# Weights have 7 bits: the sum of two products then fits into the 16 bits in which processors without
# 8-bit dot products (VNNI) add them, so that integer products are the same on every processor.
_MOST_WEIGHT, _MOST_STATE, _ZERO_POINT = 63, 127, 128
_LEAST = 1e-30  # instead of the largest value of zeros
_DOMAIN = "com.microsoft"
_ONE, _SMALL, _SHARE, _ZERO = (f"int8.{name}" for name in ("one", "least", "share", "zero"))
_CONSTANTS = {
    _ONE: np.float32(1),
    _SMALL: np.float32(_LEAST),
    _SHARE: np.float32(1 / _MOST_STATE),
    _ZERO: np.uint8(_ZERO_POINT),
}


def quantised(path: Path) -> bytes:
    """An ONNX model whose products of states and weights have 8-bit operands.

    Its weights are in the file itself, as float32 or in 8 bits with scales. Its opset is below 18.
    """
    model, constants = Model(path.read_bytes()), dict[str, Any](_CONSTANTS)
    producers = {name: node for node in model.nodes for name in node.outputs}

    def constant(name: str) -> NDArray[Any] | None:
        """The value of a tensor that is stored, possibly cast and scaled."""
        if name in model.tensors:
            return read_array(model.tensors[name])
        node = producers.get(name)
        if node is None or node.kind not in ("Cast", "Mul"):
            return None
        values = [value for each in node.inputs if (value := constant(each)) is not None]
        if len(values) < len(node.inputs):
            return None
        return np.prod(np.broadcast_arrays(*values), axis=0, dtype=np.float32)

    nodes, rounded = list[Node](), set[str]()
    for node in model.nodes:
        weights = constant(node.inputs[1]) if node.kind == "MatMul" else None
        if weights is None or weights.ndim != 2:
            nodes.append(node)
            continue
        (states, name), (out,) = node.inputs, node.outputs
        if states not in rounded:
            nodes += _rounding(states)
            rounded.add(states)
        scales = np.maximum(np.abs(weights).max(axis=0), _LEAST) / _MOST_WEIGHT
        integers, scale = f"int8.{name}", f"int8.{name}.scale"
        constants[integers] = np.rint(weights / scales).astype(np.int8)
        constants[scale] = scales.astype(np.float32)
        operands = [f"int8.{states}", integers, _ONE, scale, _ZERO]
        nodes += [
            Node.make("MatMulIntegerToFloat", operands, [f"int8.{out}"], _DOMAIN),
            Node.make("Mul", [f"int8.{out}", f"int8.{states}.scale"], [out]),
        ]
    used = {name for node in nodes for name in node.inputs}
    tensors = {name: each for name, each in model.tensors.items() if name in used}
    added = {name: write_array(name, np.asarray(value)) for name, value in constants.items()}
    model.nodes, model.tensors = nodes, tensors | added
    model.require_domain(_DOMAIN)
    return model.content()


def _rounding(states: str) -> list[Node]:
    """Nodes that divide each row of states by a scale of its own, and round it to 8 bits."""
    row = f"int8.{states}"
    return [
        Node.make("ReduceMax", [states], [f"{row}.max"], axes=[-1]),
        Node.make("ReduceMin", [states], [f"{row}.min"], axes=[-1]),
        Node.make("Neg", [f"{row}.min"], [f"{row}.neg"]),
        Node.make("Max", [f"{row}.max", f"{row}.neg", _SMALL], [f"{row}.most"]),
        Node.make("Mul", [f"{row}.most", _SHARE], [f"{row}.scale"]),
        Node.make("Div", [states, f"{row}.scale"], [f"{row}.unit"]),
        Node.make("QuantizeLinear", [f"{row}.unit", _ONE, _ZERO], [row]),
    ]
