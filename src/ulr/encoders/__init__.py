"""Encoders turn texts into vectors; `load_encoder` makes one by its name."""

from ulr.encoders.batching import encode_batches, encode_texts, in_batches
from ulr.encoders.cache import CachedEncoder
from ulr.encoders.cross import CrossEncoder, LabelScores, PairScorer
from ulr.encoders.esa import EsaEncoder
from ulr.encoders.joined import JoinedEncoder
from ulr.encoders.onnx import OnnxEncoder
from ulr.encoders.protocol import Encoder, OnTexts, fingerprint
from ulr.encoders.registry import ENCODERS, AnyEncoder, EncoderKind, load_encoder
from ulr.encoders.static import StaticEncoder
from ulr.encoders.transformer import TransformerEncoder
from ulr.encoders.words import WordEncoder

__all__ = [
    "ENCODERS",
    "AnyEncoder",
    "CachedEncoder",
    "CrossEncoder",
    "Encoder",
    "EncoderKind",
    "EsaEncoder",
    "JoinedEncoder",
    "LabelScores",
    "OnTexts",
    "OnnxEncoder",
    "PairScorer",
    "StaticEncoder",
    "TransformerEncoder",
    "WordEncoder",
    "encode_batches",
    "encode_texts",
    "fingerprint",
    "in_batches",
    "load_encoder",
]
