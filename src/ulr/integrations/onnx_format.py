"""A small writer of ONNX files: the protobuf messages that a graph of operators needs.

Field numbers are those of ``onnx.proto``. Writing them takes no package, and no one to read them
back but onnxruntime.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ulr.encoders import TENSOR_TYPES, write_array, write_message

_IR_VERSION, _OPSET = 8, 13  # read by onnxruntime from 1.10 on
_INT, _INTS = 2, 7  # AttributeProto.AttributeType


def _message(*fields: tuple[int, int | str | bytes]) -> bytes:
    """A message of numbered fields: integers, texts, and bytes or other messages."""
    encoded = [(key, each.encode() if isinstance(each, str) else each) for key, each in fields]
    return write_message(encoded)


def _attribute(name: str, value: int | Sequence[int]) -> bytes:
    if isinstance(value, int):
        return _message((1, name), (3, value), (20, _INT))
    return _message((1, name), *((8, each) for each in value), (20, _INTS))


@dataclass
class Graph:
    """Operators in the order of their computation; a value is known by its name."""

    nodes: list[bytes] = field(default_factory=list)
    constants: list[bytes] = field(default_factory=list)
    inputs: list[bytes] = field(default_factory=list)
    outputs: list[bytes] = field(default_factory=list)

    def input(self, name: str, dtype: str, shape: Sequence[int | str]) -> str:
        """An input; a size that is a text may differ between calls."""
        self.inputs.append(_value(name, dtype, shape))
        return name

    def output(self, value: str, name: str, dtype: str, shape: Sequence[int | str]) -> None:
        """Give a value out under a name."""
        self.nodes.append(_message((1, value), (2, name), (4, "Identity")))
        self.outputs.append(_value(name, dtype, shape))

    def constant(self, values: object, dtype: str = "float32") -> str:
        """An array that belongs to the file."""
        name = f"constant{len(self.constants)}"
        self.constants.append(write_array(name, np.ascontiguousarray(values, dtype=dtype)))
        return name

    def add(self, operator: str, *inputs: str, **attributes: int | Sequence[int]) -> str:
        """The value of an operator."""
        name = f"value{len(self.nodes)}"
        given = [(5, _attribute(key, value)) for key, value in attributes.items()]
        self.nodes.append(_message(*((1, x) for x in inputs), (2, name), (4, operator), *given))
        return name

    def model(self, name: str, metadata: Mapping[str, str]) -> bytes:
        """The content of an ONNX file."""
        parts = {1: self.nodes, 5: self.constants, 11: self.inputs, 12: self.outputs}
        graph = _message((2, name), *((key, each) for key in parts for each in parts[key]))
        notes = [(14, _message((1, key), (2, text))) for key, text in metadata.items()]
        return _message(
            (1, _IR_VERSION), (2, "ulr"), (7, graph), (8, _message((2, _OPSET))), *notes
        )


def _value(name: str, dtype: str, shape: Sequence[int | str]) -> bytes:
    dims = [(1, _message((1 if isinstance(each, int) else 2, each))) for each in shape]
    tensor = _message((1, TENSOR_TYPES[np.dtype(dtype)]), (2, _message(*dims)))
    return _message((1, name), (2, _message((1, tensor))))
