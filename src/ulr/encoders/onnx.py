"""Sentence encoders on onnxruntime, without PyTorch: pooled hidden states of unit length.

Pooling, length and prompts are read from the files of sentence-transformers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.known_models import KNOWN_MODELS, model_files
from ulr.encoders.onnx_files import Floats, OnnxModel, find_model, max_positions
from ulr.encoders.protocol import LabelEncoder, ModelEncoder
from ulr.encoders.tokenization import check_max_tokens, clean_texts, n_truncated
from ulr.encoders.weights import absolute_name, model_errors, read_json
from ulr.errors import EncoderError
from ulr.files import sha256

_POOLED, _HIDDEN = "sentence_embedding", "last_hidden_state"
_MAX_TOKENS = 256
_SETTINGS = (  # of sentence-transformers
    "modules.json",
    "config_sentence_transformers.json",
    "sentence_*_config.json",
    "*_Pooling/config.json",
)


@dataclass(frozen=True)
class Recipe:
    """How texts become vectors; the defaults are those of a folder that states nothing."""

    pooling: str = "mean"
    max_tokens: int = _MAX_TOKENS
    lowercase: bool = False
    prefix: str = ""  # before a document
    label_prefix: str = ""  # before the phrase of a label

    @property
    def fingerprint(self) -> str:
        """Identifies what changes the vectors of documents, but for the length."""
        prefix = f", prefix {self.prefix!r}" * bool(self.prefix)
        return self.pooling + ", lower case" * self.lowercase + prefix


class OnnxEncoder(ModelEncoder):
    """Encode a text as the pooled last hidden states of its tokens, of unit length.

    The output ``sentence_embedding`` of a model is used as it is; otherwise the pooled
    ``last_hidden_state``, or else the first output. Texts with more tokens than the recipe says,
    special ones and the prefix included, are truncated and counted in `truncated`; they are cut to
    1,000 characters per token before. Threads may share it. Use `from_folder` or `known` to make
    one.
    """

    batch_texts = 256

    def __init__(
        self,
        model: Path,
        tokenizer: Path,
        recipe: Recipe,
        fingerprint: str,
        limit: int | None = None,
        *,
        int8: bool = False,
    ) -> None:
        self._model, self._recipe = OnnxModel(model, tokenizer, int8=int8), recipe
        check_max_tokens(recipe.max_tokens, self._model.tokenizer, limit, str(model), pair=False)
        outputs = self._model.outputs
        self._output = next((each for each in (_POOLED, _HIDDEN) if each in outputs), outputs[0])
        self._model.tokenizer.enable_truncation(recipe.max_tokens)
        self.max_tokens = recipe.max_tokens
        with model_errors(f"{model} cannot be used as an encoder of texts"):
            self.n_dims = self._encode_with("", ["", "a"]).shape[1]
        self.fingerprint = f"{fingerprint}, {recipe.max_tokens} tokens"
        self._again = partial(OnnxEncoder, model, tokenizer, recipe, fingerprint)
        self.label_encoder = None
        if (prefix := recipe.label_prefix) != recipe.prefix:
            encode = partial(self._encode_with, prefix)
            self.label_encoder = LabelEncoder(self, encode, f"prefix {prefix!r}")

    @classmethod
    def from_folder(cls, name_or_path: str, max_tokens: int | None = None) -> OnnxEncoder:
        """Any sentence encoder, configured by its own files.

        Parameters
        ----------
        name_or_path
            A folder with ``tokenizer.json`` and ``onnx/model.onnx`` or another file of
            ``ulr.encoders.onnx_files.MODEL_FILES``; one of its ONNX files; or the model's name on
            the Hugging Face hub, such as ``sentence-transformers/all-MiniLM-L6-v2``. The pooling,
            the prompts and the length are those of the files of sentence-transformers; without
            them, it is the mean and no prompt.
        max_tokens
            Tokens of a text that are used; None for the folder's own, but at most 256.
        """
        folder, model = find_model(name_or_path, ("*config.json", *_SETTINGS))
        tokenizer = folder / "tokenizer.json"
        with model_errors(f"{folder} cannot be read as a model of sentence-transformers"):
            limit = max_positions(folder)
            recipe = _read_recipe(folder, limit)
        if max_tokens is not None:
            recipe = replace(recipe, max_tokens=max_tokens)
        # The weights of large models are a file of their own.
        files = (model, *sorted(model.parent.glob(f"{model.name}?data")), tokenizer)
        hashes = " ".join(sha256(file)[:16] for file in files)
        encoder = cls(model, tokenizer, recipe, f"onnx {hashes}, {recipe.fingerprint}", limit)
        encoder.spec = f"onnx:{absolute_name(name_or_path)}"
        return encoder

    @classmethod
    def known(cls, name: str, max_tokens: int | None = None, *, int8: bool = False) -> OnnxEncoder:
        """A model of `KNOWN_MODELS`, from installed packages or downloaded before.

        With `int8`, its products with weights are of 8-bit integers, which is faster and nearly as
        accurate; see `ulr.encoders.quantisation`.
        """
        about, files = KNOWN_MODELS[name], model_files(name)
        model = files["model.onnx"]
        encoder = cls(
            model,
            files["tokenizer.json"],
            Recipe(
                pooling=about.pooling,
                max_tokens=max_tokens or about.max_tokens,
                prefix=about.prefix,
                label_prefix=about.label_prefix,
            ),
            f"{name}{' int8 by rows' * int8} {sha256(model)[:16]}",
            int8=int8,
        )
        encoder.spec, encoder.languages = name + "-int8" * int8, about.languages
        encoder._again = partial(cls.known, name, max_tokens, int8=int8)
        return encoder

    def encode(self, texts: list[str], /) -> Floats:
        """Vectors of the texts, (n_texts, n_dims), in their order."""
        return self._encode_with(self._recipe.prefix, texts)

    def _encode_with(self, prefix: str, texts: list[str]) -> Floats:
        if not texts:
            raise EncoderError("there are no texts to encode.")
        cleaned = clean_texts(texts, self.max_tokens)
        if self._recipe.lowercase:
            cleaned = [text.lower() for text in cleaned]
        encoded = self._model.tokenizer.encode_batch([prefix + text for text in cleaned])
        self._count_truncated(n_truncated(texts, encoded, self.max_tokens))
        return self._model.run(encoded, self._output, self._pool)

    def _pool(self, states: Floats, mask: NDArray[np.int64]) -> Floats:
        """Vectors of unit length, (n_texts, n_dims), from hidden states or vectors."""
        if states.ndim == 3 and self._recipe.pooling == "cls":
            states = states[:, 0]
        elif states.ndim == 3:  # the sum, which has the direction of the mean
            states = np.einsum("btd,bt->bd", states, mask.astype(np.float32))
        lengths = np.linalg.norm(states, axis=1, keepdims=True)
        vectors: Floats = states / np.maximum(lengths, np.finfo(np.float32).tiny)
        return vectors


def _read_recipe(folder: Path, limit: int | None) -> Recipe:
    """The settings of a sentence-transformers folder; the defaults for other folders.

    `limit` is the most tokens that the model has positions for, None for any number.
    """
    most = min(limit or _MAX_TOKENS, _MAX_TOKENS)
    if not (folder / "modules.json").is_file():
        return Recipe(max_tokens=most)
    modules = read_json(folder / "modules.json")
    kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        raise _unsupported(folder, f"the modules {', '.join(kinds)}")
    transformer, pooling = (folder / module["path"] for module in modules[:2])
    settings = read_json(next(iter(sorted(transformer.glob("sentence_*_config.json"))), None))
    pooling_config = read_json(pooling / "config.json")
    own = read_json(folder / "config_sentence_transformers.json")
    if own.get("truncate_dim") is not None:
        raise _unsupported(folder, "a truncate_dim")
    prompts, default = own.get("prompts") or {}, own.get("default_prompt_name")
    documents = ("document", "passage", "corpus", default)
    prefix = next((str(prompts[name]) for name in documents if name in prompts), "")
    label_prefix = str(prompts.get("query", prompts.get(default, "")))
    if not pooling_config.get("include_prompt", True) and (prefix or label_prefix):
        raise _unsupported(folder, "a pooling without the prompt")
    return Recipe(
        pooling=_pooling(folder, pooling_config),
        max_tokens=min(settings.get("max_seq_length") or most, most),
        lowercase=bool(settings.get("do_lower_case", False)),
        prefix=prefix,
        label_prefix=label_prefix,
    )


def _unsupported(folder: Path, found: str) -> EncoderError:
    """The error for settings that would need another kind of encoder."""
    return EncoderError(
        f"{folder} has {found}, where only Transformer, Pooling (mean or cls) and Normalize are "
        f"supported; give SentenceTransformer({str(folder)!r}) itself as the encoder."
    )


def _pooling(folder: Path, config: dict[str, Any]) -> str:
    """The pooling of a sentence-transformers folder, stated by name or, formerly, by flags."""
    flags = [
        key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for key, value in config.items()
        if key.startswith("pooling_mode_") and value
    ]
    stated = config.get("pooling_mode", flags or "mean")
    modes = [stated] if isinstance(stated, str) else list(stated)
    if len(modes) != 1 or modes[0] not in ("mean", "cls"):
        raise _unsupported(folder, f"the pooling {' + '.join(modes)}")
    return str(modes[0])
