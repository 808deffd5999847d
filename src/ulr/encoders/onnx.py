"""Sentence encoders on onnxruntime, without PyTorch: pooled hidden states of unit length."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from ulr.cores import available_cores
from ulr.encoders.batching import batches_by_length, padded_inputs
from ulr.encoders.counters import Counter
from ulr.encoders.downloads import is_downloaded, verified_folder
from ulr.encoders.known_models import KNOWN_MODELS, KnownModel
from ulr.encoders.onnx_files import find_model, max_positions, new_session, pad_token
from ulr.encoders.pretrained import checked_max_tokens, clean_texts, model_errors
from ulr.encoders.protocol import CopiedByReference
from ulr.encoders.quantised import quantised
from ulr.encoders.recipe import FILES, read_recipe, unsupported
from ulr.encoders.tokenization import count_truncated, is_one_token, unknown_token
from ulr.errors import EncoderError
from ulr.files import sha256

MAX_TOKENS = 256
_BATCH_TOKENS = 512
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_POOLED, _HIDDEN = "sentence_embedding", "last_hidden_state"

Floats = NDArray[np.float32]


def _mean(states: Floats, mask: NDArray[np.int64]) -> Floats:
    """Mean over the tokens that are not padding, up to a factor, (n_texts, n_dims)."""
    return np.einsum("btd,bt->bd", states, mask.astype(np.float32))


def _cls(states: Floats, mask: NDArray[np.int64]) -> Floats:
    """State of the first token, (n_texts, n_dims)."""
    return states[:, 0]


_POOLINGS: dict[str, Callable[[Floats, NDArray[np.int64]], Floats]] = {"mean": _mean, "cls": _cls}


class OnnxEncoder(CopiedByReference):
    """Encode a text as the pooled last hidden states of its tokens, of unit length.

    Threads may share it.

    Parameters
    ----------
    model
        ONNX file with inputs ``input_ids``, ``attention_mask`` and optionally ``token_type_ids``.
        Its output is ``sentence_embedding``, which is used as it is, or ``last_hidden_state``, or
        else the first one.
    tokenizer
        JSON file of the tokenizer.
    pooling
        ``"mean"`` over the tokens, special ones included, or ``"cls"``, the first token.
    max_tokens
        Tokens of a text that are used, special ones and the prefix included. Longer texts are
        truncated and counted in `truncated`; they are cut to 1,000 characters per token before.
    prefix, label_prefix
        What the model expects before a document, and before the phrase of a label.
    lowercase
        Whether texts are lower-cased.
    fingerprint
        Identifies the model, the tokenizer and the pooling.
    threads
        Number of threads; None for all cores.

    Attributes
    ----------
    n_dims
        Dimensions of the vectors.
    truncated
        Texts truncated so far.
    languages
        Codes of the languages that the model was made for; None if that is unknown.
    label_encoder
        Encodes the phrases of labels; None if they have no prefix of their own.
    """

    batch_texts = 256
    spec: str | None = None
    languages: tuple[str, ...] | None = None

    def __init__(
        self,
        model: Path,
        tokenizer: Path,
        *,
        pooling: str = "mean",
        max_tokens: int = MAX_TOKENS,
        prefix: str = "",
        label_prefix: str = "",
        lowercase: bool = False,
        fingerprint: str = "onnx",
        threads: int | None = None,
    ) -> None:
        if pooling not in _POOLINGS:
            raise EncoderError(f"pooling must be one of {', '.join(_POOLINGS)}; got {pooling!r}.")
        if max_tokens < 3:
            raise EncoderError(f"max_tokens must be at least 3; got {max_tokens}.")
        settings: dict[str, Any] = {"pooling": pooling, "max_tokens": max_tokens, "prefix": prefix}
        settings |= {"label_prefix": label_prefix, "lowercase": lowercase}
        settings |= {"fingerprint": fingerprint, "threads": threads}
        self._again: Callable[[], OnnxEncoder] = partial(OnnxEncoder, model, tokenizer, **settings)
        with model_errors(f"{model.parent} cannot be loaded"):
            self._session = new_session(model)
            self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._inputs = [each.name for each in self._session.get_inputs()]
        if others := sorted(set(self._inputs) - set(_INPUTS)):
            raise EncoderError(
                f"{model} needs the inputs {', '.join(others)}; only {', '.join(_INPUTS)} are "
                "supported."
            )
        outputs = [each.name for each in self._session.get_outputs()]
        self._output = next((each for each in (_POOLED, _HIDDEN) if each in outputs), outputs[0])
        self._pad = pad_token(self._tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._unknown_token = unknown_token(self._tokenizer)
        self._pool = _POOLINGS[pooling]
        self._prefix, self._lowercase = prefix, lowercase
        self._threads = threads or available_cores()
        self.max_tokens = max_tokens
        self._truncated = Counter()
        with model_errors(f"{model} cannot be used as an encoder of texts"):
            self.n_dims = self._vectors(self._tokenizer.encode_batch(["", "a"])).shape[1]
        self.fingerprint = f"{fingerprint}, {max_tokens} tokens"
        self.label_encoder = None if label_prefix == prefix else _LabelEncoder(self, label_prefix)

    @classmethod
    def from_folder(cls, name_or_path: str, max_tokens: int | None = None) -> OnnxEncoder:
        """Any sentence encoder, configured by its own files.

        Parameters
        ----------
        name_or_path
            A folder with ``tokenizer.json`` and ``onnx/model.onnx`` or another file of
            `ulr.encoders.onnx_files.MODEL_FILES`; one of its ONNX files; or the model's name on
            the Hugging Face hub, such as ``sentence-transformers/all-MiniLM-L6-v2``. The pooling,
            the prompts and the length are those of the files of sentence-transformers; without
            them, it is the mean and no prompt.
        max_tokens
            As for the class; None for the folder's own, but at most 256.
        """
        folder, model = find_model(name_or_path, ("*config.json", *FILES))
        with model_errors(f"{folder} cannot be read"):
            recipe, limit = read_recipe(folder), max_positions(folder)
        prefix = recipe.prompt("document", "passage", "corpus")
        label_prefix = recipe.prompt("query")
        if not recipe.include_prompt and (prefix or label_prefix):
            raise unsupported(folder, "a pooling without the prompt")
        tokenizer = folder / "tokenizer.json"
        if max_tokens is None:
            max_tokens = min(recipe.max_tokens or MAX_TOKENS, limit or MAX_TOKENS, MAX_TOKENS)
        else:
            with model_errors(f"{folder} cannot be loaded"):
                known = Tokenizer.from_file(str(tokenizer))
            checked_max_tokens(max_tokens, known, limit, str(name_or_path), pair=False)
        fingerprint = f"onnx {' '.join(_hashes(model, tokenizer))}, {recipe.pooling}"
        fingerprint += ", lower case" * recipe.lowercase + f", prefix {prefix!r}" * bool(prefix)
        encoder = cls(
            model,
            tokenizer,
            pooling=recipe.pooling,
            max_tokens=max_tokens,
            prefix=prefix,
            label_prefix=label_prefix,
            lowercase=recipe.lowercase,
            fingerprint=fingerprint,
        )
        given = Path(name_or_path).expanduser()
        encoder.spec = f"onnx:{given.absolute() if given.exists() else name_or_path}"
        return encoder

    @classmethod
    def known(cls, name: str, max_tokens: int | None = None, *, int8: bool = False) -> OnnxEncoder:
        """A model of `KNOWN_MODELS`, from installed packages or downloaded before.

        Parameters
        ----------
        name
            Its name, such as ``minilm``.
        max_tokens
            As for the class; None for the model's own.
        int8
            Whether its matrix products are quantised to 8 bits, which is faster and nearly as
            accurate. The quantised model is written once to the user's cache folder. Rounding
            depends on the other texts of a batch, so that vectors of the same text differ by up to
            a few hundredths.
        """
        about = KNOWN_MODELS[name]
        model, tokenizer = _known_files(name, about)
        own_name, digest = (f"{name}-int8" if int8 else name), sha256(model)[:16]
        encoder = cls(
            quantised(model, own_name) if int8 else model,
            tokenizer,
            pooling=about.pooling,
            max_tokens=max_tokens or about.max_tokens,
            prefix=about.prefix,
            label_prefix=about.label_prefix,
            fingerprint=f"{name}{' int8' * int8} {digest}",
        )
        encoder.spec, encoder.languages = own_name, about.languages
        encoder._again = partial(cls.known, name, max_tokens, int8=int8)
        return encoder

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, (), {"spec": self.spec, "languages": self.languages}

    @property
    def truncated(self) -> int:
        """Texts truncated so far."""
        return self._truncated.value

    def knows_word(self, word: str) -> bool:
        """Whether a word is one token."""
        return is_one_token(self._tokenizer, word, self._unknown_token)

    def encode(self, texts: list[str], /) -> Floats:
        """Vectors of the texts, (n_texts, n_dims), in their order."""
        return self.encode_with(self._prefix, texts)

    def encode_with(self, prefix: str, texts: list[str]) -> Floats:
        """Vectors of the texts, (n_texts, n_dims), with a prefix before each."""
        if not texts:
            raise EncoderError("there are no texts to encode.")
        cleaned = clean_texts(texts, self._lowercase, self.max_tokens)
        encoded = self._tokenizer.encode_batch([prefix + text for text in cleaned])
        self._truncated.add(count_truncated(texts, encoded, self.max_tokens))
        lengths = [len(each.ids) for each in encoded]
        batches = list(batches_by_length(lengths, _BATCH_TOKENS))[::-1]  # the longest first

        def encode_batch(batch: NDArray[np.intp]) -> Floats:
            return self._vectors([encoded[index] for index in batch])

        vectors = np.empty((len(texts), self.n_dims), dtype=np.float32)
        with ThreadPoolExecutor(min(self._threads, len(batches))) as pool:
            for batch, found in zip(batches, pool.map(encode_batch, batches), strict=True):
                vectors[batch] = found
        return vectors

    def _vectors(self, batch: list[Encoding]) -> Floats:
        """Vectors of tokenized texts, of unit length, (n_texts, n_dims)."""
        inputs = padded_inputs(batch, self._pad)
        (found,) = self._session.run([self._output], {name: inputs[name] for name in self._inputs})
        states = np.asarray(found, dtype=np.float32)
        vectors = states if states.ndim == 2 else self._pool(states, inputs["attention_mask"])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(lengths, np.finfo(np.float32).tiny)


class _LabelEncoder(CopiedByReference):
    """Encodes the phrases of labels with a prefix of their own."""

    def __init__(self, encoder: OnnxEncoder, prefix: str) -> None:
        self._encoder, self._prefix = encoder, prefix
        self.fingerprint = f"{encoder.fingerprint}, label prefix {prefix!r}"
        self.batch_texts = encoder.batch_texts

    def encode(self, texts: list[str], /) -> Floats:
        """Vectors of the phrases, (n_texts, n_dims), in their order."""
        return self._encoder.encode_with(self._prefix, texts)


def _known_files(name: str, about: KnownModel) -> tuple[Path, Path]:
    """Model and tokenizer of a known model: installed, or else downloaded."""
    installed = about.installed
    if installed and (all(file.installed() for file in installed) or not is_downloaded(name)):
        model, tokenizer = (file.locate() for file in installed)
        return model, tokenizer
    folder, model = find_model(verified_folder(name), ())
    return model, folder / "tokenizer.json"


def _hashes(model: Path, tokenizer: Path) -> list[str]:
    """Short hashes of the files of a model; weights of large models are a file of their own."""
    weights = sorted(model.parent.glob(f"{model.name}?data"))
    return [sha256(file)[:16] for file in (model, *weights, tokenizer)]
