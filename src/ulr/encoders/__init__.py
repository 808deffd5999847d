"""Texts to vectors: one file a kind of encoder, and `load_encoder` to get one by name."""

from ulr.encoders.onnx import OnnxEncoder
from ulr.encoders.protocol import (
    Encoder,
    OnTexts,
    encode_batches,
    encode_texts,
    fingerprint,
    in_batches,
)
from ulr.encoders.registry import ENCODERS, EncoderKind, load_encoder
from ulr.encoders.static import StaticEncoder

__all__ = [
    "ENCODERS",
    "Encoder",
    "EncoderKind",
    "OnTexts",
    "OnnxEncoder",
    "StaticEncoder",
    "encode_batches",
    "encode_texts",
    "fingerprint",
    "in_batches",
    "load_encoder",
]
