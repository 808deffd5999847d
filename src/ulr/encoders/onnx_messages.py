"""The messages of an ONNX file that a change of its graph needs, in protocol buffers' wire format.

A message is a list of fields; those that nothing here knows are kept as they are. The numbers of
fields and types are those of ``onnx.proto``. None of these messages has fields of fixed size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Field = tuple[int, int | bytes]  # its number; an integer, or the content of text and messages

_VARINT, _BYTES = 0, 2  # wire types
_MODEL_GRAPH, _MODEL_OPSET = 7, 8
_OPSET_DOMAIN, _OPSET_VERSION = 1, 2
_GRAPH_NODE, _GRAPH_TENSOR = 1, 5
_NODE_INPUT, _NODE_OUTPUT, _NODE_KIND, _NODE_ATTRIBUTE, _NODE_DOMAIN = 1, 2, 4, 5, 7
_ATTRIBUTE_NAME, _ATTRIBUTE_INTS, _ATTRIBUTE_TYPE, _INTS = 1, 8, 20, 7
_TENSOR_DIMS, _TENSOR_TYPE, _TENSOR_NAME, _TENSOR_RAW = 1, 2, 8, 9
_TYPES = {1: "<f4", 2: "|u1", 3: "|i1", 6: "<i4", 7: "<i8", 9: "|b1", 10: "<f2"}
TENSOR_TYPES = {np.dtype(kind): number for number, kind in _TYPES.items()}


@dataclass(frozen=True)
class Node:
    """An operation of a graph, and the whole message."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    content: bytes

    @classmethod
    def read(cls, content: bytes) -> Node:
        """The node of a message."""
        fields = _read_fields(content)
        return cls(
            "".join(_texts(fields, _NODE_KIND)),
            tuple(_texts(fields, _NODE_INPUT)),
            tuple(_texts(fields, _NODE_OUTPUT)),
            content,
        )

    @classmethod
    def make(
        cls,
        kind: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        domain: str = "",
        **attributes: Sequence[int],
    ) -> Node:
        """A node without a name; its attributes are lists of integers."""
        fields = [(_NODE_INPUT, name.encode()) for name in inputs]
        fields += [(_NODE_OUTPUT, name.encode()) for name in outputs]
        fields.append((_NODE_KIND, kind.encode()))
        for name, numbers in attributes.items():
            attribute: list[Field] = [(_ATTRIBUTE_NAME, name.encode())]
            attribute += [(_ATTRIBUTE_INTS, number) for number in numbers]
            fields.append((_NODE_ATTRIBUTE, write_message([*attribute, (_ATTRIBUTE_TYPE, _INTS)])))
        if domain:
            fields.append((_NODE_DOMAIN, domain.encode()))
        return cls(kind, tuple(inputs), tuple(outputs), write_message(fields))


class Model:
    """An ONNX file: its nodes and stored tensors by name, which may be replaced."""

    def __init__(self, content: bytes) -> None:
        self._fields = _read_fields(content)
        fields = _read_fields(b"".join(_values(self._fields, _MODEL_GRAPH)))
        self.nodes = [Node.read(value) for value in _values(fields, _GRAPH_NODE)]
        tensors = _values(fields, _GRAPH_TENSOR)
        self.tensors = {_texts(_read_fields(each), _TENSOR_NAME)[0]: each for each in tensors}
        self._others = [each for each in fields if each[0] not in (_GRAPH_NODE, _GRAPH_TENSOR)]

    def require_domain(self, domain: str) -> None:
        """State that nodes are of the first version of a domain, unless the model states one."""
        stated = _values(self._fields, _MODEL_OPSET)
        if not any(_texts(_read_fields(each), _OPSET_DOMAIN) == [domain] for each in stated):
            opset = write_message([(_OPSET_DOMAIN, domain.encode()), (_OPSET_VERSION, 1)])
            self._fields.append((_MODEL_OPSET, opset))

    def content(self) -> bytes:
        """The file."""
        graph = [(_GRAPH_NODE, node.content) for node in self.nodes]
        graph += [(_GRAPH_TENSOR, tensor) for tensor in self.tensors.values()]
        content = write_message([*graph, *self._others])
        others = [each for each in self._fields if each[0] != _MODEL_GRAPH]
        return write_message([*others, (_MODEL_GRAPH, content)])


def read_array(tensor: bytes) -> NDArray[Any] | None:
    """The values of a stored tensor; None if they are of another type or in another file."""
    fields = _read_fields(tensor)
    raw, number = _values(fields, _TENSOR_RAW), _numbers(fields, _TENSOR_TYPE)
    if not raw or number[0] not in _TYPES:
        return None
    return np.frombuffer(raw[0], _TYPES[number[0]]).reshape(_numbers(fields, _TENSOR_DIMS))


def write_array(name: str, array: NDArray[Any]) -> bytes:
    """A tensor of these values."""
    dims: list[Field] = [(_TENSOR_DIMS, length) for length in array.shape]
    kind = array.dtype.newbyteorder("<")
    return write_message(
        [
            *dims,
            (_TENSOR_TYPE, TENSOR_TYPES[kind]),
            (_TENSOR_NAME, name.encode()),
            (_TENSOR_RAW, array.astype(kind).tobytes()),
        ]
    )


def _read_fields(content: bytes) -> list[Field]:
    """The fields of a message, in their order."""
    fields, at = list[Field](), 0
    while at < len(content):
        key, at = _read_varint(content, at)
        number, wire_type = key >> 3, key & 7
        value, at = _read_varint(content, at)
        if wire_type == _VARINT:
            fields.append((number, value))
        elif wire_type == _BYTES and at + value <= len(content):
            fields.append((number, content[at : at + value]))
            at += value
        else:
            raise ValueError("it is not a complete ONNX file")
    return fields


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    """An integer, and where it ends: seven bits a byte, the lowest first."""
    value = shift = 0
    while at < len(content):
        byte = content[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ValueError("it is not a complete ONNX file")


def write_message(fields: Iterable[Field]) -> bytes:
    """A message, its fields sorted by their numbers, as protocol buffers' own writers do it."""
    parts = list[bytes]()
    for number, value in sorted(fields, key=lambda field: field[0]):
        if isinstance(value, bytes):
            parts += [_varint(number << 3 | _BYTES), _varint(len(value)), value]
        else:
            parts += [_varint(number << 3 | _VARINT), _varint(value)]
    return b"".join(parts)


def _varint(value: int) -> bytes:
    """An integer in seven bits a byte; a negative one has 64 bits."""
    value &= (1 << 64) - 1
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def _values(fields: Iterable[Field], number: int) -> list[bytes]:
    """The contents of the fields with a number."""
    return [value for each, value in fields if each == number and isinstance(value, bytes)]


def _numbers(fields: Iterable[Field], number: int) -> list[int]:
    """The integers of the fields with a number."""
    return [value for each, value in fields if each == number and isinstance(value, int)]


def _texts(fields: Iterable[Field], number: int) -> list[str]:
    """The texts of the fields with a number."""
    return [value.decode() for value in _values(fields, number)]
