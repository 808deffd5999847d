"""Hugging Face models on PyTorch, from safetensors alone: a folder or a name on the hub.

`TransformerEncoder` is the dual encoder; `Pretrained` is what the single encoder shares with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding

from ulr.encoders.lengths import alike_in_length
from ulr.encoders.tokens import whole_characters
from ulr.errors import EncoderError
from ulr.files import sha256

if TYPE_CHECKING:
    import torch

MAX_TOKENS = 128
_WEIGHTS, _WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"
_VOCABULARY = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "*.model")
_FROM_HUB = ["*.json", *_VOCABULARY, _WEIGHTS, "model-*.safetensors"]
_PRECISIONS = ("float32", "float16", "bfloat16")
_TOKENS_AT_A_TIME = {"cpu": 2048, "cuda": 32768, "mps": 16384}


def mean_of_tokens(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean over the real tokens, special ones included, (n_texts, n_dims)."""
    real = mask.unsqueeze(-1).to(states.dtype)
    return (states * real).sum(dim=1) / real.sum(dim=1)


def first_token(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """State of the first token, (n_texts, n_dims)."""
    return states[:, 0]


POOLINGS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "mean": mean_of_tokens,
    "cls": first_token,
}


class TransformerEncoder:
    """A dual encoder: texts and labels through the same transformer, the last states pooled.

    A folder of sentence-transformers is recognised: its pooling, length, lower-casing and scaling
    to length one are kept, unless another is asked for. Other vectors are not scaled.

    Parameters
    ----------
    name_or_path
        A folder, or the name of a model on the Hugging Face hub. Only safetensors are read, and no
        code of the model's own is run.
    pooling
        ``"mean"`` over the tokens, special ones included, or ``"cls"``, the first token. None for
        what the folder says, else the mean.
    max_tokens
        Tokens of a text that are used, special ones included; texts that are longer are cut, and
        counted in `truncated`. None for what the folder says, else 128.
    lowercase
        Whether texts are lower-cased first. None for what the folder says, else not.
    device
        ``"cpu"``, ``"cuda"``, ``"cuda:N"`` or ``"mps"``; None for the fastest there is.
    precision
        ``"float32"``, ``"float16"`` or ``"bfloat16"``; None for half precision on a GPU and
        float32 on the CPU. It is no part of the fingerprint: the vectors remain comparable.
    tokens_at_a_time
        Tokens of a batch; None for what suits the device.

    Attributes
    ----------
    truncated
        Texts cut so far.
    n_dims
        Dimensions of the vectors.
    """

    texts_at_a_time = 512

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        pooling: str | None = None,
        max_tokens: int | None = None,
        lowercase: bool | None = None,
        device: str | None = None,
        precision: str | None = None,
        tokens_at_a_time: int | None = None,
    ) -> None:
        settings: dict[str, Any] = {
            "pooling": pooling,
            "max_tokens": max_tokens,
            "lowercase": lowercase,
        }
        where: dict[str, Any] = {
            "device": device,
            "precision": precision,
            "tokens_at_a_time": tokens_at_a_time,
        }
        folder = find_model(name_or_path)
        recipe = _read_recipe(folder)
        self.pooling = recipe.pooling if pooling is None else pooling
        if self.pooling not in POOLINGS:
            raise EncoderError(f"pooling must be one of {', '.join(POOLINGS)}; got {pooling!r}.")
        self.lowercase = recipe.lowercase if lowercase is None else lowercase
        self._unit_length = recipe.unit_length
        self._model = Pretrained(recipe.transformer, str(name_or_path), **where)
        said = None
        if recipe.from_sentence_transformers:
            said = recipe.max_tokens or self._model.stated_max_tokens
        self.max_tokens = self._model.allowed_tokens(max_tokens, said)
        self._model.tokenizer.enable_truncation(
            self.max_tokens, direction=self._model.truncation_side
        )
        self.truncated = 0
        with unusable(f"{name_or_path} cannot be used as an encoder of texts"):
            self.n_dims = int(self._pooled(self._model.tokenizer.encode_batch_fast([""])).shape[1])
        self.device = str(self._model.device)
        if self._model.device.type != "cpu":
            self.texts_at_a_time = 4096
        self.fingerprint = self._fingerprint()
        name = model_name(name_or_path)
        self.spec = f"hf:{name}" if all(each is None for each in settings.values()) else None
        self._again = partial(type(self), name, **settings, **where)

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Vectors of the texts, (n_texts, n_dims), in their order."""
        if not texts:
            raise EncoderError("there are no texts to encode.")
        encoded = self._model.tokenizer.encode_batch_fast(cleaned(texts, self.lowercase))
        self.truncated += sum(bool(each.overflowing) for each in encoded)
        vectors = np.empty((len(texts), self.n_dims), dtype=np.float32)
        lengths = [len(each.ids) for each in encoded]
        for places in alike_in_length(lengths, self._model.tokens_at_a_time):
            vectors[places] = self._pooled([encoded[place] for place in places])
        return vectors

    def _pooled(self, batch: list[Encoding]) -> NDArray[np.float32]:
        """Vectors of some texts, padded to the longest."""
        output, mask = self._model.run(batch)
        vectors = POOLINGS[self.pooling](output.last_hidden_state.float(), mask)
        if self._unit_length:
            vectors = vectors / vectors.norm(dim=1, keepdim=True).clamp_min(1e-12)
        return vectors.cpu().numpy()

    def _fingerprint(self) -> str:
        parts = [f"hf {self._model.fingerprint}", self.pooling, f"{self.max_tokens} tokens"]
        if self.lowercase:
            parts.append("lower case")
        if self._unit_length:
            parts.append("unit length")
        return ", ".join(parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, ()


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


@dataclass(frozen=True)
class _Recipe:
    """What a folder says about how vectors are made with it."""

    transformer: Path
    from_sentence_transformers: bool = False
    pooling: str = "mean"
    max_tokens: int | None = None
    lowercase: bool = False
    unit_length: bool = False


def _read_recipe(folder: Path) -> _Recipe:
    """The recipe in a folder of sentence-transformers; the plain one for other folders."""
    if not (folder / "modules.json").is_file():
        return _Recipe(folder)
    try:
        modules = _read_json(folder / "modules.json")
        kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
        if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
            raise _only_with_sentence_transformers(folder, f"the modules {', '.join(kinds)}")
        transformer, pooling = (folder / module["path"] for module in modules[:2])
        own = _read_json(next(iter(sorted(transformer.glob("sentence_*_config.json"))), None))
        for what in ("default_prompt_name", "truncate_dim"):
            if _read_json(folder / "config_sentence_transformers.json").get(what) is not None:
                raise _only_with_sentence_transformers(folder, f"a {what}")
        return _Recipe(
            transformer,
            from_sentence_transformers=True,
            pooling=_pooling(folder, _read_json(pooling / "config.json")),
            max_tokens=own.get("max_seq_length"),
            lowercase=bool(own.get("do_lower_case", False)),
            unit_length=len(kinds) == 3,
        )
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, UnicodeError) as error:
        raise EncoderError(
            f"{folder} is not a whole model of sentence-transformers: {error!r}."
        ) from error


def _pooling(folder: Path, config: dict[str, Any]) -> str:
    """The pooling of a sentence-transformers folder, stated by name or by one flag a kind."""
    flags = [
        key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for key, value in config.items()
        if key.startswith("pooling_mode_") and value
    ]
    stated = config.get("pooling_mode", flags or "mean")
    modes = [stated] if isinstance(stated, str) else list(stated)
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise _only_with_sentence_transformers(folder, f"the pooling {' + '.join(modes)}")
    return str(modes[0])


def _only_with_sentence_transformers(folder: Path, what: str) -> EncoderError:
    return EncoderError(
        f"{folder} has {what}, where only Transformer, Pooling (mean or cls) and Normalize are "
        f"understood; give SentenceTransformer({str(folder)!r}) itself as the encoder."
    )


def _read_json(file: Path | None) -> Any:
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
    """The folder of a model: the given one, or the copy of the hub's on this machine.

    What is not on this machine yet is downloaded.
    """
    folder = Path(name_or_path).expanduser()
    if folder.is_dir():
        return folder
    require_torch()
    from huggingface_hub import errors

    name = str(name_or_path)
    try:
        with quiet():
            return _fetched(name)
    except errors.HFValidationError:
        raise EncoderError(
            f"{name!r} is neither a folder nor the name of a model on the Hugging Face hub."
        ) from None
    except errors.GatedRepoError:
        raise EncoderError(
            f"the model {name!r} asks for consent; give it at https://huggingface.co/{name}, then "
            "log in with: hf auth login."
        ) from None
    except errors.RepositoryNotFoundError:
        raise EncoderError(
            f"{name!r} is neither a folder nor a public model on the Hugging Face hub."
        ) from None
    except Exception as error:  # the network has as many errors as layers
        raise EncoderError(
            f"{name!r} is not a folder, and the Hugging Face hub cannot be reached to fetch it "
            f"({_one_line(error)}); connect to it, or give the folder of a model."
        ) from error


def _fetched(name: str) -> Path:
    """The folder of the newest copy, or of the one at hand where the network fails."""
    from huggingface_hub import errors, snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=_FROM_HUB))
    except (errors.HFValidationError, errors.RepositoryNotFoundError):
        raise
    except Exception:
        with contextlib.suppress(Exception):
            return Path(snapshot_download(name, allow_patterns=_FROM_HUB, local_files_only=True))
        raise


def _weights(folder: Path, name: str) -> list[Path]:
    """The safetensors files of a model."""
    if not (folder / "config.json").is_file():
        raise EncoderError(f"{name} is not a model: it has no config.json.")
    if (folder / "adapter_config.json").is_file():
        raise EncoderError(f"{name} is an adapter; merge it into its model and save that.")
    if (folder / _WEIGHTS).is_file():
        return [folder / _WEIGHTS]
    try:
        parts = sorted(set(_read_json(folder / _WEIGHTS_INDEX)["weight_map"].values()))
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
        raise EncoderError(f"{what}: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__
