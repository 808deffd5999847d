"""8-bit arithmetic of ONNX models: products with constant weights become products of integers.

The dynamic quantisation of onnxruntime rounds by the largest value of a batch, so that a vector
depends on the other texts of its batch. Here the state of each token has a scale of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.errors import EncoderError, require

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

    Its weights are float32, or stored in 8 bits with scales. Its opset is below 18.
    """
    onnx = require("onnx", "minilm-int8", EncoderError)
    model, make = onnx.load(str(path)), onnx.helper.make_node
    graph, constants = model.graph, dict[str, Any](_CONSTANTS)
    stored = {each.name: each for each in graph.initializer}
    producers = {name: node for node in graph.node for name in node.output}

    def constant(name: str) -> NDArray[Any] | None:
        """The value of a tensor that is stored, possibly cast and scaled."""
        if name in stored:
            return np.asarray(onnx.numpy_helper.to_array(stored[name]))
        node = producers.get(name)
        if node is None or node.op_type not in ("Cast", "Mul"):
            return None
        values = [value for each in node.input if (value := constant(each)) is not None]
        if len(values) < len(node.input):
            return None
        return np.prod(np.broadcast_arrays(*values), axis=0, dtype=np.float32)

    nodes, rounded = list[Any](), set[str]()
    for node in graph.node:
        weights = constant(node.input[1]) if node.op_type == "MatMul" else None
        if weights is None or weights.ndim != 2:
            nodes.append(node)
            continue
        (states, name), (out,) = node.input, node.output
        if states not in rounded:
            nodes += _rounding(states, make)
            rounded.add(states)
        scales = np.maximum(np.abs(weights).max(axis=0), _LEAST) / _MOST_WEIGHT
        integers, scale = f"int8.{name}", f"int8.{name}.scale"
        constants[integers] = np.rint(weights / scales).astype(np.int8)
        constants[scale] = scales.astype(np.float32)
        operands = [f"int8.{states}", integers, _ONE, scale, _ZERO]
        nodes += [
            make("MatMulIntegerToFloat", operands, [f"int8.{out}"], domain=_DOMAIN),
            make("Mul", [f"int8.{out}", f"int8.{states}.scale"], [out]),
        ]
    used = {name for node in nodes for name in node.input}
    initializers = [each for name, each in stored.items() if name in used]
    initializers += [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    for field, values in ((graph.node, nodes), (graph.initializer, initializers)):
        del field[:]
        field.extend(values)
    if all(each.domain != _DOMAIN for each in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(_DOMAIN, 1))
    content: bytes = model.SerializeToString()
    return content


def _rounding(states: str, make: Any) -> list[Any]:
    """Nodes that divide each row of states by a scale of its own, and round it to 8 bits."""
    row = f"int8.{states}"
    return [
        make("ReduceMax", [states], [f"{row}.max"], axes=[-1]),
        make("ReduceMin", [states], [f"{row}.min"], axes=[-1]),
        make("Neg", [f"{row}.min"], [f"{row}.neg"]),
        make("Max", [f"{row}.max", f"{row}.neg", _SMALL], [f"{row}.most"]),
        make("Mul", [f"{row}.most", _SHARE], [f"{row}.scale"]),
        make("Div", [states, f"{row}.scale"], [f"{row}.unit"]),
        make("QuantizeLinear", [f"{row}.unit", _ONE, _ZERO], [row]),
    ]
