"""Encoders turn texts into vectors; `load_encoder` makes one by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulr.lazy import lazy_names

if TYPE_CHECKING:
    from ulr.encoders.cache import CachedEncoder, CacheEntry, clear_cache, inspect_cache
    from ulr.encoders.cross import CrossEncoder, LabelScores, PairScorer
    from ulr.encoders.joined import JoinedEncoder
    from ulr.encoders.known_models import KNOWN_MODELS, download_model
    from ulr.encoders.onnx import OnnxEncoder
    from ulr.encoders.onnx_messages import TENSOR_TYPES, write_array, write_message
    from ulr.encoders.pieces import PieceMemo, SplitTexts
    from ulr.encoders.protocol import (
        Encoder,
        batch_texts,
        batch_threads,
        check_vectors,
        encode_texts,
        fingerprint,
        label_encoder,
    )
    from ulr.encoders.registry import ENCODERS, AnyEncoder, EncoderKind, load_encoder
    from ulr.encoders.static import StaticEncoder
    from ulr.encoders.torch import TransformerEncoder, load_transformer
    from ulr.encoders.universal import UniversalEncoder
    from ulr.encoders.weights import find_folder
    from ulr.encoders.words import WordEncoder

__all__ = [
    "ENCODERS",
    "KNOWN_MODELS",
    "TENSOR_TYPES",
    "AnyEncoder",
    "CacheEntry",
    "CachedEncoder",
    "CrossEncoder",
    "Encoder",
    "EncoderKind",
    "JoinedEncoder",
    "LabelScores",
    "OnnxEncoder",
    "PairScorer",
    "PieceMemo",
    "SplitTexts",
    "StaticEncoder",
    "TransformerEncoder",
    "UniversalEncoder",
    "WordEncoder",
    "batch_texts",
    "batch_threads",
    "check_vectors",
    "clear_cache",
    "download_model",
    "encode_texts",
    "find_folder",
    "fingerprint",
    "inspect_cache",
    "label_encoder",
    "load_encoder",
    "load_transformer",
    "write_array",
    "write_message",
]

__getattr__ = lazy_names(
    __name__,
    cache="CacheEntry CachedEncoder clear_cache inspect_cache",
    cross="CrossEncoder LabelScores PairScorer",
    joined="JoinedEncoder",
    known_models="KNOWN_MODELS download_model",
    onnx="OnnxEncoder",
    onnx_messages="TENSOR_TYPES write_array write_message",
    pieces="PieceMemo SplitTexts",
    protocol="Encoder batch_texts batch_threads check_vectors encode_texts fingerprint label_encoder",
    registry="AnyEncoder ENCODERS EncoderKind load_encoder",
    static="StaticEncoder",
    torch="TransformerEncoder load_transformer",
    universal="UniversalEncoder",
    weights="find_folder",
    words="WordEncoder",
)
