"""Hugging Face models on PyTorch, from safetensors alone: found, checked, loaded, run in batches.

What is made of their outputs is left to the dual encoder and the single one.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import logging
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Encoding

from ulr.encoders.tokens import whole_characters
from ulr.encoders.weights import find_folder, one_line
from ulr.errors import EncoderError
from ulr.files import sha256

if TYPE_CHECKING:
    import torch

MAX_TOKENS = 128
_WEIGHTS, _WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"
_VOCABULARY = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "*.model")
_FROM_HUB = ("*.json", *_VOCABULARY, _WEIGHTS, "model-*.safetensors")
_PRECISIONS = ("float32", "float16", "bfloat16")
_TOKENS_AT_A_TIME = {"cpu": 2048, "cuda": 32768, "mps": 16384}


class Pretrained:
    """A model and its tokenizer on a device, with batches padded behind their texts.

    Parameters
    ----------
    folder
        Where its files are.
    name
        What the user calls it.
    head
        The class of `transformers` that loads it.
    device, precision, tokens_at_a_time
        As for `TransformerEncoder`.

    Attributes
    ----------
    tokenizer
        The tokenizer, which neither pads nor truncates yet.
    config
        The model's own description of itself.
    fingerprint
        The hashes of its weights and of its vocabulary.
    most_tokens
        Tokens that it has positions for; None where there is no limit.
    stated_max_tokens
        The length that its tokenizer states; None where it states none.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        head: str = "AutoModel",
        device: str | None = None,
        precision: str | None = None,
        tokens_at_a_time: int | None = None,
    ) -> None:
        require_torch()
        if precision is not None and precision not in _PRECISIONS:
            raise EncoderError(
                f"precision must be one of {', '.join(_PRECISIONS)}; got {precision!r}."
            )
        if tokens_at_a_time is not None and tokens_at_a_time < 1:
            raise EncoderError(f"tokens_at_a_time must be at least 1; got {tokens_at_a_time}.")
        self.name = name
        self.device = choose_device(device)
        weights, vocabulary = _weights(folder, name), _vocabulary(folder, name)
        if precision is None:
            precision = "float32" if self.device.type == "cpu" else "float16"
        with quiet(), unusable(f"{name} cannot be loaded"):
            tokenizer, self._model = _load(folder, name, head, precision)
            self._model.to(self.device).eval()
        self.tokenizer = tokenizer.backend_tokenizer
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.truncation_side = tokenizer.truncation_side
        self._pad = tokenizer.pad_token_id or 0
        self._inputs = ["input_ids", "attention_mask"]
        accepted = inspect.signature(self._model.forward).parameters
        if "token_type_ids" in tokenizer.model_input_names and "token_type_ids" in accepted:
            self._inputs.append("token_type_ids")
        self.config = self._model.config
        self.fingerprint = f"{_combined(weights)} {_combined(vocabulary)}"
        self.tokens_at_a_time = tokens_at_a_time or _TOKENS_AT_A_TIME[self.device.type]
        self.most_tokens = _positions(self._model)
        stated = int(tokenizer.model_max_length)
        self.stated_max_tokens = self.most_tokens if stated > 1_000_000 else stated

    def allowed_tokens(
        self, asked: int | None, said: int | None = None, *, pair: bool = False
    ) -> int:
        """Tokens to use: those asked for if they can be, else those said elsewhere, else 128."""
        least = self.tokenizer.num_special_tokens_to_add(pair) + 1
        if asked is None:
            wished = said or MAX_TOKENS
            return max(least, min(wished, self.most_tokens or wished))
        if asked < least:
            raise EncoderError(f"max_tokens must be at least {least} for {self.name}; got {asked}.")
        if self.most_tokens is not None and asked > self.most_tokens:
            raise EncoderError(
                f"max_tokens must be at most {self.most_tokens} for {self.name}, which has no "
                f"positions for more; got {asked}."
            )
        return asked

    def run(self, batch: list[Encoding]) -> tuple[Any, torch.Tensor]:
        """What the model gives for some texts, and which of their (n_texts, n_tokens) are real."""
        import torch

        shape = len(batch), max(len(each.ids) for each in batch)
        given = {
            "input_ids": np.full(shape, self._pad, dtype=np.int64),
            "token_type_ids": np.zeros(shape, dtype=np.int64),
            "attention_mask": np.zeros(shape, dtype=np.int64),
        }
        for row, each in enumerate(batch):
            end = len(each.ids)
            given["input_ids"][row, :end] = each.ids
            given["token_type_ids"][row, :end] = each.type_ids
            given["attention_mask"][row, :end] = 1
        tensors = {name: torch.from_numpy(each).to(self.device) for name, each in given.items()}
        try:
            with torch.inference_mode():
                output = self._model(**{name: tensors[name] for name in self._inputs})
        except torch.OutOfMemoryError:
            raise EncoderError(
                f"{self.device} has no memory for {shape[0]} × {shape[1]} tokens of {self.name}; "
                f"give tokens_at_a_time less than {self.tokens_at_a_time}, or device='cpu'."
            ) from None
        return output, tensors["attention_mask"]


def read_json(file: Path | None) -> Any:
    """Content of a JSON file; nothing where there is no such file."""
    if file is None or not file.is_file():
        return {}
    return json.loads(file.read_text(encoding="utf-8"))


def require_torch() -> None:
    """Say what to install where PyTorch or transformers is missing."""
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise EncoderError(
                f"'{package}' is not installed; install it with: pip install 'ulr[torch]'."
            )


def model_name(name_or_path: str | Path) -> str:
    """What finds the model again from anywhere: a whole path, or the name on the hub."""
    folder = Path(name_or_path).expanduser()
    return str(folder.absolute()) if folder.is_dir() else str(name_or_path)


def find_model(name_or_path: str | Path) -> Path:
    """The folder of a model: the given one, or the copy of the hub's on this machine."""
    if Path(name_or_path).expanduser().is_dir():
        return find_folder(name_or_path, _FROM_HUB)
    require_torch()
    with quiet():
        return find_folder(name_or_path, _FROM_HUB)


def _weights(folder: Path, name: str) -> list[Path]:
    """The safetensors files of a model."""
    if not (folder / "config.json").is_file():
        raise EncoderError(f"{name} is not a model: it has no config.json.")
    if (folder / "adapter_config.json").is_file():
        raise EncoderError(f"{name} is an adapter; merge it into its model and save that.")
    if (folder / _WEIGHTS).is_file():
        return [folder / _WEIGHTS]
    try:
        parts = sorted(set(read_json(folder / _WEIGHTS_INDEX)["weight_map"].values()))
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, UnicodeError):
        raise EncoderError(
            f"{name} has no safetensors weights, and pickled ones, such as pytorch_model.bin, are "
            "never loaded; save it again with save_pretrained of a recent transformers."
        ) from None
    if lacking := [part for part in parts if not (folder / part).is_file()]:
        raise EncoderError(f"{name} is not a whole model: {', '.join(lacking)} is not there.")
    return [folder / part for part in parts]


def _vocabulary(folder: Path, name: str) -> list[Path]:
    """The files of a model's tokenizer."""
    files = sorted({file for pattern in _VOCABULARY for file in folder.glob(pattern)})
    if not files:  # transformers would go on with an empty vocabulary
        raise EncoderError(f"{name} has no tokenizer: neither tokenizer.json nor a vocabulary.")
    return files


def _combined(files: list[Path]) -> str:
    """One short hash for the content of files."""
    hashes = [sha256(file) for file in files]
    whole = hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
    return whole[:16]


def _load(folder: Path, name: str, head: str, precision: str) -> tuple[Any, Any]:
    """The tokenizer and the model, every weight of it out of the folder's safetensors."""
    import torch
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
    if getattr(config, "transformers_weights", None) is not None:
        raise EncoderError(f"{name} names a file of weights in its config.json; take that out.")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    if not tokenizer.is_fast:
        raise EncoderError(f"{name} has no fast tokenizer (tokenizer.json), which is needed.")
    kind = transformers.MODEL_MAPPING.get(type(config), None) if head == "AutoModel" else None
    pooler = inspect.isclass(kind) and "add_pooling_layer" in inspect.signature(kind).parameters
    model, info = getattr(transformers, head).from_pretrained(
        folder,
        config=config,
        dtype=getattr(torch, precision),
        use_safetensors=True,
        trust_remote_code=False,
        output_loading_info=True,
        **({"add_pooling_layer": False} if pooler else {}),
    )
    if head == "AutoModel" and config.is_encoder_decoder:
        raise EncoderError(
            f"{name} is a {type(model).__name__}, of an encoder and a decoder; hf: takes models "
            "that only encode."
        )
    # The dual encoder does not look at a pooler; all else that is missing would be random.
    unused = "pooler." if head == "AutoModel" else "\0"
    _refuse_misfits(name, model, tokenizer, {k for k in info["missing_keys"] if unused not in k})
    return tokenizer, model


def _refuse_misfits(name: str, model: Any, tokenizer: Any, missing: set[str]) -> None:
    """Refuse a model that is not all there, or that does not know its tokenizer's tokens."""
    if missing:
        raise EncoderError(
            f"{name} lacks weights of {type(model).__name__}, such as {min(missing)}; "
            "it was saved as another kind of model."
        )
    last = max(tokenizer.get_vocab().values(), default=-1)
    if last >= (known := model.get_input_embeddings().num_embeddings):
        raise EncoderError(
            f"the tokenizer of {name} numbers its tokens from 0 to {last}, but the model knows "
            f"only {known}."
        )


def _positions(model: Any) -> int | None:
    """Tokens that a model has positions for; None where there is no limit."""
    from torch.nn import Embedding

    stated = getattr(model.config, "max_position_embeddings", None)
    limits = [stated] if isinstance(stated, int) and stated > 0 else []
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, Embedding):
            # RoBERTa counts positions from the one behind that of the padding.
            first = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - first)
    return min(limits, default=None)


def choose_device(asked: str | None) -> torch.device:
    """The device of that name, or the fastest one of this machine."""
    import torch

    there = {
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
        "cpu": 1,
    }
    if asked is None:
        return torch.device(next(kind for kind, number in there.items() if number))
    kind, _, number = asked.partition(":")
    if kind not in there or not (number or "0").isdecimal():
        raise EncoderError(f"device must be cpu, cuda, cuda:N or mps; got {asked!r}.")
    if int(number or 0) >= there[kind]:
        raise EncoderError(
            f"PyTorch finds no device {asked!r} here; there are: "
            f"{', '.join(f'{each} ({count})' for each, count in there.items() if count)}."
        )
    return torch.device(asked)


def cleaned(texts: list[str], lowercase: bool) -> list[str]:
    """Texts as the tokenizer gets them: of whole characters, lower-cased if so wished."""
    whole = [whole_characters(text) for text in texts]
    return [text.lower() for text in whole] if lowercase else whole


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No log lines and no progress bars of Hugging Face within the block."""
    from huggingface_hub import constants

    bars: Any = import_module("transformers.utils.logging")
    loggers = [logging.getLogger(name) for name in ("transformers", "huggingface_hub")]
    levels = [logger.level for logger in loggers]
    # Where the environment decides about the bars, they are left to it.
    hide = constants.HF_HUB_DISABLE_PROGRESS_BARS is None and bars.is_progress_bar_enabled()
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    if hide:
        bars.disable_progress_bar()
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if hide:
            bars.enable_progress_bar()


@contextlib.contextmanager
def unusable(what: str) -> Iterator[None]:
    """Turn whatever a library says of a model that it cannot use into one sentence."""
    try:
        yield
    except EncoderError:
        raise
    except Exception as error:  # a damaged or foreign model fails in any way
        raise EncoderError(f"{what}: {one_line(error)}") from error
