"""Hugging Face models on PyTorch: found, verified, loaded from safetensors, run in batches.

Used by the dual and the single encoder, and for training them.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Encoding, Tokenizer

from ulr.encoders.batching import padded_inputs
from ulr.encoders.tokenization import max_characters, replace_surrogates
from ulr.encoders.weights import find_folder, first_line, install_command
from ulr.errors import EncoderError
from ulr.files import sha256

if TYPE_CHECKING:
    import torch

MAX_TOKENS = 128
DUAL, SINGLE = "AutoModel", "AutoModelForSequenceClassification"
_WEIGHTS, _WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"
_VOCABULARY = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "*.model")
_FROM_HUB = ("*.json", *_VOCABULARY, _WEIGHTS, "model-*.safetensors")
_PRECISIONS = ("float32", "float16", "bfloat16")
_BATCH_TOKENS = {"cpu": 2048, "cuda": 32768, "mps": 16384}
_HEAD_PARTS = ("pooler.", "classifier", "score", "pre_")
_QUIET = threading.RLock()


class Pretrained:
    """A model and its tokenizer on a device.

    Parameters
    ----------
    folder
        Folder of the model.
    name
        Name of the model in messages.
    head
        Class of `transformers` that loads it, `DUAL` or `SINGLE`.
    new_outputs
        Number of outputs of the head in training: weights of a head that the folder lacks are
        initialised with PyTorch's random generator. None to refuse models with missing weights.
    device, precision, batch_tokens
        As for `TransformerEncoder`.

    Attributes
    ----------
    model
        The model, in evaluation mode.
    tokenizer
        The tokenizer, without padding and truncation.
    config
        The model's configuration.
    fingerprint
        Hashes of its weights and its vocabulary.
    max_positions
        Most tokens that it has positions for; None if there is no limit.
    stated_max_tokens
        The length that its tokenizer states; None if it states none.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        head: str = DUAL,
        new_outputs: int | None = None,
        device: str | None = None,
        precision: str | None = None,
        batch_tokens: int | None = None,
    ) -> None:
        require_torch()
        if precision is not None and precision not in _PRECISIONS:
            raise EncoderError(
                f"precision must be one of {', '.join(_PRECISIONS)}; got {precision!r}."
            )
        if batch_tokens is not None and batch_tokens < 1:
            raise EncoderError(f"batch_tokens must be at least 1; got {batch_tokens}.")
        self.name = name
        self.device = choose_device(device)
        weights, vocabulary = _weight_files(folder, name), _vocabulary_files(folder, name)
        if precision is None:
            precision = "float32" if self.device.type == "cpu" else "float16"
        with quiet(), model_errors(f"{name} cannot be loaded"):
            self._tokenizer, self.model = _load(folder, name, head, precision, new_outputs)
            self.model.to(self.device).eval()
        self.tokenizer = self._tokenizer.backend_tokenizer
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.truncation_side = self._tokenizer.truncation_side
        self._pad = self._tokenizer.pad_token_id or 0
        accepted = inspect.signature(self.model.forward).parameters
        expected = self._tokenizer.model_input_names
        self._has_types = "token_type_ids" in expected and "token_type_ids" in accepted
        self.config = self.model.config
        self.fingerprint = f"{_hash_of(weights)} {_hash_of(vocabulary)}"
        self.batch_tokens = batch_tokens or _BATCH_TOKENS[self.device.type]
        self.max_positions = _max_positions(self.model)
        stated = int(self._tokenizer.model_max_length)
        self.stated_max_tokens = self.max_positions if stated > 1_000_000 else stated

    def choose_max_tokens(
        self, requested: int | None, default: int | None = None, *, pair: bool = False
    ) -> int:
        """The requested number of tokens if it is possible; without one, `default` or 128."""
        if requested is None:
            least = self.tokenizer.num_special_tokens_to_add(pair) + 1
            chosen = default or MAX_TOKENS
            return max(least, min(chosen, self.max_positions or chosen))
        return checked_max_tokens(
            requested, self.tokenizer, self.max_positions, self.name, pair=pair
        )

    def inputs(self, batch: Sequence[Encoding]) -> dict[str, torch.Tensor]:
        """Inputs of the model for tokenized texts, padded to the longest, (n_texts, n_tokens)."""
        import torch

        arrays = padded_inputs(batch, self._pad)
        if not self._has_types:
            del arrays["token_type_ids"]
        return {name: torch.from_numpy(each).to(self.device) for name, each in arrays.items()}

    def run(self, batch: Sequence[Encoding]) -> tuple[Any, torch.Tensor]:
        """Output of the model, and the mask of the tokens that are not padding."""
        import torch

        inputs = self.inputs(batch)
        try:
            with torch.inference_mode():
                return self.model(**inputs), inputs["attention_mask"]
        except torch.OutOfMemoryError:
            n_texts, n_tokens = inputs["attention_mask"].shape
            raise EncoderError(
                f"{self.device} has no memory for {n_texts} × {n_tokens} tokens of {self.name}; "
                f"give batch_tokens less than {self.batch_tokens}, or device='cpu'."
            ) from None

    def save(self, folder: Path) -> None:
        """Write the model and its tokenizer to a folder."""
        self.tokenizer.no_truncation()
        with quiet():
            self.model.save_pretrained(folder)
            self._tokenizer.save_pretrained(folder)


def checked_max_tokens(
    requested: int, tokenizer: Tokenizer, max_positions: int | None, name: str, *, pair: bool
) -> int:
    """The requested number of tokens of a text or a pair, special ones included, if possible."""
    least = tokenizer.num_special_tokens_to_add(pair) + 1
    if requested < least:
        raise EncoderError(f"max_tokens must be at least {least} for {name}; got {requested}.")
    if max_positions is not None and requested > max_positions:
        raise EncoderError(
            f"max_tokens must be at most {max_positions} for {name}, which has no positions for "
            f"more; got {requested}."
        )
    return requested


def read_json(file: Path | None) -> Any:
    """Content of a JSON file; an empty object if there is no file."""
    if file is None or not file.is_file():
        return {}
    return json.loads(file.read_text(encoding="utf-8"))


def require_torch() -> None:
    """Refuse to continue if PyTorch or transformers is not installed."""
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise EncoderError(
                f"'{package}' is not installed; install it with: {install_command('torch')}."
            )


def absolute_name(name_or_path: str | Path) -> str:
    """A name that finds the model from any working directory: a path, or a name on the hub."""
    folder = Path(name_or_path).expanduser()
    return str(folder.absolute()) if folder.exists() else str(name_or_path)


def find_model(name_or_path: str | Path) -> Path:
    """The folder of a model: the given one, or a download from the Hugging Face hub."""
    if not Path(name_or_path).expanduser().is_dir():
        require_torch()  # before a download
    return find_folder(name_or_path, _FROM_HUB)


def choose_device(requested: str | None) -> torch.device:
    """The requested device, or the fastest one of this machine."""
    import torch

    counts = {
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
        "cpu": 1,
    }
    if requested is None:
        return torch.device(next(kind for kind, count in counts.items() if count))
    kind, _, number = requested.partition(":")
    if kind not in counts or not (number or "0").isdecimal():
        raise EncoderError(f"device must be cpu, cuda, cuda:N or mps; got {requested!r}.")
    if int(number or 0) >= counts[kind]:
        raise EncoderError(
            f"PyTorch finds no device {requested!r} here; there are: "
            f"{', '.join(f'{each} ({count})' for each, count in counts.items() if count)}."
        )
    return torch.device(requested)


def clean_texts(
    texts: list[str], lowercase: bool, max_tokens: int, side: str = "right"
) -> list[str]:
    """Texts for a tokenizer: valid Unicode, lower-cased if requested, and of bounded length.

    `side` is the side on which the tokenizer truncates.
    """
    most = max_characters(max_tokens)
    kept = slice(-most, None) if side == "left" else slice(most)
    valid = (replace_surrogates(text[kept]) for text in texts)
    return [text.lower() if lowercase else text for text in valid]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide progress bars and load reports of transformers that come from this thread.

    transformers has no argument for either, only a hook and a logger of the whole process. Both
    are restored at the end, and leave other threads alone; threads run such blocks in turn.
    """
    messages: Any = import_module("transformers.utils.logging")
    set_hook = getattr(messages, "set_tqdm_hook", lambda hook: None)
    logger = logging.getLogger("transformers.modeling_utils")
    thread = threading.get_ident()

    def is_of_other_thread(record: logging.LogRecord) -> bool:
        return record.thread != thread

    def hide(factory: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if threading.get_ident() == thread:
            return messages.EmptyTqdm(*args, **kwargs)
        return previous(factory, args, kwargs) if previous else factory(*args, **kwargs)

    with _QUIET:
        previous = set_hook(hide)
        logger.addFilter(is_of_other_thread)
        try:
            yield
        finally:
            logger.removeFilter(is_of_other_thread)
            set_hook(previous)


@contextlib.contextmanager
def model_errors(problem: str) -> Iterator[None]:
    """Turn any error of a library about a model into one sentence."""
    try:
        yield
    except EncoderError:
        raise
    except Exception as error:  # a damaged or unsupported model can raise any type
        raise EncoderError(f"{problem}: {first_line(error)}") from error


def _weight_files(folder: Path, name: str) -> list[Path]:
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
    if missing := [part for part in parts if not (folder / part).is_file()]:
        raise EncoderError(f"{name} is incomplete: it has no {', '.join(missing)}.")
    return [folder / part for part in parts]


def _vocabulary_files(folder: Path, name: str) -> list[Path]:
    """The files of a model's tokenizer."""
    files = sorted({file for pattern in _VOCABULARY for file in folder.glob(pattern)})
    if not files:  # transformers would continue with an empty vocabulary
        raise EncoderError(f"{name} has no tokenizer: neither tokenizer.json nor a vocabulary.")
    return files


def _hash_of(files: list[Path]) -> str:
    """One short hash of the content of files."""
    hashes = [sha256(file) for file in files]
    whole = hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
    return whole[:16]


def _load(
    folder: Path, name: str, head: str, precision: str, new_outputs: int | None
) -> tuple[Any, Any]:
    """The tokenizer and the model, from the safetensors in the folder."""
    import torch
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
    if getattr(config, "transformers_weights", None) is not None:
        raise EncoderError(f"{name} names a file of weights in its config.json; remove that.")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    if not tokenizer.is_fast:
        raise EncoderError(f"{name} has no fast tokenizer (tokenizer.json), which is needed.")
    options: dict[str, Any] = {}
    if head == DUAL:
        kind = transformers.MODEL_MAPPING.get(type(config), None)
        if inspect.isclass(kind) and "add_pooling_layer" in inspect.signature(kind).parameters:
            options["add_pooling_layer"] = False
    elif new_outputs is not None:
        config.num_labels = new_outputs
        options["ignore_mismatched_sizes"] = True
    model, info = getattr(transformers, head).from_pretrained(
        folder,
        config=config,
        dtype=getattr(torch, precision),
        use_safetensors=True,
        trust_remote_code=False,
        output_loading_info=True,
        **options,
    )
    if head == DUAL and config.is_encoder_decoder:
        raise EncoderError(
            f"{name} is a {type(model).__name__}, of an encoder and a decoder; hf: takes models "
            "that only encode."
        )
    # A dual encoder does not use the pooler. Other missing weights would be random.
    new_parts = ("pooler.",) if head == DUAL else _HEAD_PARTS if new_outputs is not None else ()
    missing = {key for key in info["missing_keys"] if not any(part in key for part in new_parts)}
    _refuse_incomplete(name, model, tokenizer, missing)
    return tokenizer, model


def _refuse_incomplete(name: str, model: Any, tokenizer: Any, missing: set[str]) -> None:
    """Refuse a model that lacks weights, or vectors of tokens of its tokenizer."""
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


def _max_positions(model: Any) -> int | None:
    """Most tokens that a model has positions for; None if there is no limit."""
    from torch.nn import Embedding

    stated = getattr(model.config, "max_position_embeddings", None)
    limits = [stated] if isinstance(stated, int) and stated > 0 else []
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, Embedding):
            # RoBERTa numbers positions from the one after that of the padding.
            first = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - first)
    return min(limits, default=None)
