"""Encoders turn texts into vectors; `load_encoder` makes one by its name."""

from ulr.encoders.batching import encode_batches, encode_texts, in_batches
from ulr.encoders.cache import CachedEncoder
from ulr.encoders.cross import CrossEncoder, LabelScores, PairScorer
from ulr.encoders.esa import EsaEncoder
from ulr.encoders.joined import JoinedEncoder
from ulr.encoders.known_models import KNOWN_MODELS, KnownModel
from ulr.encoders.onnx import OnnxEncoder
from ulr.encoders.protocol import Encoder, OnTexts, fingerprint, label_encoder
from ulr.encoders.registry import ENCODERS, AnyEncoder, EncoderKind, load_encoder
from ulr.encoders.static import StaticEncoder
from ulr.encoders.transformer import TransformerEncoder
from ulr.encoders.universal import UniversalEncoder
from ulr.encoders.words import WordEncoder

__all__ = [
    "ENCODERS",
    "KNOWN_MODELS",
    "AnyEncoder",
    "CachedEncoder",
    "CrossEncoder",
    "Encoder",
    "EncoderKind",
    "EsaEncoder",
    "JoinedEncoder",
    "KnownModel",
    "LabelScores",
    "OnTexts",
    "OnnxEncoder",
    "PairScorer",
    "StaticEncoder",
    "TransformerEncoder",
    "UniversalEncoder",
    "WordEncoder",
    "encode_batches",
    "encode_texts",
    "fingerprint",
    "in_batches",
    "label_encoder",
    "load_encoder",
]
