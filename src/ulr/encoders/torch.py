"""Hugging Face models on PyTorch, run by sentence-transformers: safe loading, and the dual encoder.

Only safetensors are read, and no code of a model is run.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import logging
import re
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.protocol import LabelEncoder, ModelEncoder
from ulr.encoders.tokenization import check_max_tokens, clean_texts, n_truncated
from ulr.encoders.weights import absolute_name, find_folder, model_errors, read_json
from ulr.errors import EncoderError, require
from ulr.files import sha256

MAX_TOKENS = 128  # of a model that states no length for sentences, as in the paper
_VOCABULARY = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "*.model")
_WEIGHTS = ("model.safetensors", "model-*.safetensors")
_FROM_HUB = ("*.json", *_VOCABULARY, *_WEIGHTS, "[0-9]_*/model.safetensors")
_QUIET = threading.RLock()


def load_transformer(
    kind: str,
    name_or_path: str | Path,
    device: str | None = None,
    *,
    precision: str | None = None,
    new_outputs: int | None = None,
) -> tuple[Any, Path]:
    """A model of a class of sentence-transformers, from a folder or the hub, and its folder.

    `kind` is ``SentenceTransformer``, where a plain transformer gets mean pooling, or
    ``CrossEncoder``, a transformer with a classification head. A model without a head is refused
    or, for training, gets a new one of `new_outputs` outputs, initialised with PyTorch's random
    generator. `precision` is a type of PyTorch, by default float16 on a GPU and float32 on the CPU.
    """
    library = require("sentence_transformers", "torch", EncoderError)
    torch = require("torch", "torch", EncoderError)
    name, folder = str(name_or_path), find_folder(name_or_path, _FROM_HUB)
    _check_files(folder, name)
    # No pooling uses the pooler of a transformer; other weights may only be new in training.
    new_parts = "pooler." if kind == "SentenceTransformer" else "^$"
    options: dict[str, Any] = {}
    model_kwargs: dict[str, Any] = {"use_safetensors": True}
    if new_outputs is not None:
        new_parts = "pooler.|classifier|score|pre_"
        options["num_labels"], model_kwargs["ignore_mismatched_sizes"] = new_outputs, True
    with _quiet() as messages, model_errors(f"{name} cannot be loaded"):
        device = str(torch.device(device or library.util.get_device_name()))
        precision = precision or ("float32" if device == "cpu" else "float16")
        model = getattr(library, kind)(
            str(folder),
            device=device,
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs=model_kwargs | {"dtype": getattr(torch, precision)},
            **options,
        )
    _check_complete(model.eval(), name, messages, new_parts)
    return model, folder


class TransformerEncoder(ModelEncoder):
    """A dual encoder: texts and labels are encoded by the same transformer.

    Pooling, length, normalisation and prompts are those of the model's own files. A model without
    files of sentence-transformers gets mean pooling and 128 tokens. It runs in half precision on a
    GPU. Threads may share it; they take turns.

    Parameters
    ----------
    name_or_path
        A folder, or the name of a model on the Hugging Face hub. Only safetensors are read, and no
        code of the model is run.
    max_tokens
        Tokens of a text that are used, special ones included. Longer texts are truncated and
        counted in `truncated`; they are cut to 1,000 characters per token before. None for the
        model's own number.
    device
        ``"cpu"``, ``"cuda"``, ``"cuda:N"`` or ``"mps"``; None for the fastest one.
    batch_size
        Texts of a batch; None for a number that suits the device.
    """

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        max_tokens: int | None = None,
        device: str | None = None,
        batch_size: int | None = None,
    ) -> None:
        self._name = str(name_or_path)
        self._model, folder = load_transformer("SentenceTransformer", name_or_path, device)
        self.device, self.batch_size = placement(self._model, batch_size)
        self.batch_texts = 16 * self.batch_size
        self._tokenizer, limit = tokenizer_and_limit(self._model)
        self._again = partial(
            type(self),
            name := absolute_name(name_or_path),
            max_tokens=max_tokens,
            device=device,
            batch_size=batch_size,
        )
        if max_tokens is None:
            stated = self._model.max_seq_length if (folder / "modules.json").is_file() else None
            stated = min(stated or MAX_TOKENS, limit or stated or MAX_TOKENS)
            max_tokens = max(self._tokenizer.num_special_tokens_to_add(False) + 1, stated)
            self.spec = f"hf:{name}"
        check_max_tokens(max_tokens, self._tokenizer, limit, self._name, pair=False)
        self.max_tokens = self._model.max_seq_length = max_tokens
        self._tokenizer.enable_truncation(max_tokens)
        self._lock = threading.Lock()
        self._prompt = self._own_prompt("document", "passage")
        label_prompt = self._own_prompt("query")
        pooling, *others = _settings(self._model)
        others += [f"prompt {self._prompt!r}"] * bool(self._prompt)
        settings = ", ".join([pooling, f"{max_tokens} tokens", *others])
        self.fingerprint = f"hf {model_fingerprint(folder)}, {settings}"
        self.n_dims = int(self.encode([""]).shape[1])
        self.label_encoder = None
        if label_prompt != self._prompt:
            encode = partial(self._encode_as, "query", label_prompt)
            self.label_encoder = LabelEncoder(self, encode, f"prompt {label_prompt!r}")

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims), in their order."""
        return self._encode_as("document", self._prompt, texts)

    def _encode_as(self, role: str, prompt: str, texts: list[str]) -> NDArray[np.float32]:
        """Vectors of texts in the role of a ``document`` or a ``query``, a prompt before each."""
        if not texts:
            raise EncoderError("there are no texts to encode.")
        cleaned = clean_texts(texts, self.max_tokens, self._model.tokenizer.truncation_side)
        encode = getattr(self._model, f"encode_{role}")
        # sentence-transformers does not count, and its tokenizer has state that threads would share.
        counted = self._tokenizer.encode_batch_fast([prompt + text for text in cleaned])
        self._count_truncated(n_truncated(texts, counted, self.max_tokens))
        with self._lock, model_errors(f"{self._name} cannot encode texts on {self.device}"):
            found = encode(
                cleaned, prompt=prompt, batch_size=self.batch_size, show_progress_bar=False
            )
        return np.asarray(found, dtype=np.float32)

    def _own_prompt(self, *names: str) -> str:
        """The first prompt of some names that the model states, otherwise its default one."""
        candidates = (*names, self._model.default_prompt_name or "")
        found = (self._model.prompts.get(each) for each in candidates)
        return next((str(each) for each in found if each), "")


def placement(model: Any, batch_size: int | None) -> tuple[str, int]:
    """The device of a model, and the requested texts of a batch or a number that suits it."""
    if batch_size is not None and batch_size < 1:
        raise EncoderError(f"batch_size must be at least 1; got {batch_size}.")
    device = str(model.device)
    return device, batch_size or (32 if device == "cpu" else 256)


def tokenizer_and_limit(model: Any) -> tuple[Any, int | None]:
    """A copy of a model's tokenizer without state, and most tokens that it has positions for."""
    tokenizer = copy.deepcopy(model.tokenizer.backend_tokenizer)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    stated = getattr(model.transformers_model.config, "max_position_embeddings", None)
    limits = [stated] if isinstance(stated, int) and stated > 0 else []
    for name, module in model.transformers_model.named_modules():
        if name.endswith("position_embeddings") and hasattr(module, "num_embeddings"):
            # RoBERTa numbers positions from the one after that of the padding.
            first = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - first)
    return tokenizer, min(limits, default=None)


def model_fingerprint(folder: Path) -> str:
    """Hashes of a model's weights and of its vocabulary."""
    found = []
    for patterns in (_WEIGHTS, _VOCABULARY):
        hashes = [sha256(file) for file in _files(folder, patterns)]
        is_one = len(hashes) == 1
        whole = hashes[0] if is_one else hashlib.sha256("".join(hashes).encode()).hexdigest()
        found.append(whole[:16])
    return " ".join(found)


def _files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    """Files of a model, and of its modules in the layout of sentence-transformers."""
    both = [each for pattern in patterns for each in (pattern, f"[0-9]_*/{pattern}")]
    return sorted({file for pattern in both for file in folder.glob(pattern)})


def _settings(model: Any) -> list[str]:
    """What a dual encoder does with the states of the tokens, for its fingerprint."""
    names = {"Normalize": "unit length"}
    kinds = [(type(module).__name__, module) for module in list(model)[1:]]
    settings = [str(getattr(each, "pooling_mode", names.get(kind, kind))) for kind, each in kinds]
    settings += ["lower case"] * bool(model[0].do_lower_case)
    return settings + [f"{model.truncate_dim} dimensions"] * (model.truncate_dim is not None)


def _check_files(folder: Path, name: str) -> None:
    """Refuse a folder that is not a model, or whose weights are not safetensors."""
    if not _files(folder, ("config.json",)):
        raise EncoderError(f"{name} is not a model: it has no config.json.")
    if _files(folder, ("adapter_config.json",)):
        raise EncoderError(f"{name} is an adapter; merge it into its model and save that.")
    with model_errors(f"{name} cannot be loaded"):
        configs = [read_json(file) for file in _files(folder, ("config.json",))]
    if any("transformers_weights" in config for config in configs):
        raise EncoderError(f"{name} names a file of weights in its config.json; remove that.")
    safe = {file.parent for file in _files(folder, _WEIGHTS)}
    pickled = {file.parent for file in _files(folder, ("pytorch_model*.bin",))}
    if not safe or pickled - safe:
        raise EncoderError(
            f"{name} has no safetensors weights, and pickled ones, such as pytorch_model.bin, are "
            "never loaded; save it again with save_pretrained of a recent transformers."
        )
    if not _files(folder, _VOCABULARY):  # transformers would continue with an empty vocabulary
        raise EncoderError(f"{name} has no tokenizer: neither tokenizer.json nor a vocabulary.")


def _check_complete(model: Any, name: str, messages: list[str], new_parts: str) -> None:
    """Refuse a model that lacks weights, or vectors of tokens of its tokenizer.

    transformers initialises missing weights at random, and only its log says so.
    """
    missing = re.findall(r"^(\S+)\s*\|.*\bMISSING\b", "\n".join(messages), re.MULTILINE)
    missing = [key for key in missing if not re.search(new_parts, key)]
    transformer = model.transformers_model
    if missing:
        raise EncoderError(
            f"{name} lacks weights of {type(transformer).__name__}, such as {min(missing)}; "
            "it was saved as another kind of model."
        )
    last = max(model.tokenizer.get_vocab().values(), default=-1)
    if last >= (known := transformer.get_input_embeddings().num_embeddings):
        raise EncoderError(
            f"the tokenizer of {name} numbers its tokens from 0 to {last}, but the model knows "
            f"only {known}."
        )


@contextlib.contextmanager
def _quiet() -> Iterator[list[str]]:
    """Hide progress bars and load reports of transformers; reports of this thread are returned.

    transformers has no argument for either, only a hook and a logger of the whole process.
    """
    from transformers.utils import logging as bars

    logger = logging.getLogger("transformers.modeling_utils")
    thread, messages = threading.get_ident(), list[str]()

    def is_of_other_thread(record: logging.LogRecord) -> bool:
        if record.thread == thread:
            messages.append(record.getMessage())
        return record.thread != thread

    with _QUIET:
        previous = bars.set_tqdm_hook(lambda bar, args, kwargs: bars.EmptyTqdm(*args, **kwargs))
        logger.addFilter(is_of_other_thread)
        try:
            yield messages
        finally:
            logger.removeFilter(is_of_other_thread)
            bars.set_tqdm_hook(previous)
