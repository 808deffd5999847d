"""Files of ONNX models: which one of a folder is used, its session and its settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from ulr.encoders.pretrained import read_json
from ulr.encoders.weights import find_folder, install_command
from ulr.errors import EncoderError

# In order of preference. A folder with several has float32 weights in the first, and the others
# are the same model in fewer bits.
_PRECISIONS = ("model", "model_fp16", "model_quantized", "model_int8")
MODEL_FILES = tuple(f"{folder}{name}.onnx" for name in _PRECISIONS for folder in ("onnx/", ""))
_UNLIMITED = 1_000_000  # tokenizers state a huge number if they have no limit


def find_model(name_or_path: str | Path, settings: tuple[str, ...]) -> tuple[Path, Path]:
    """The folder of a model, and the ONNX file in it that is used.

    Parameters
    ----------
    name_or_path
        A folder, an ONNX file in it or in its subfolder ``onnx``, or the name of a model on the
        Hugging Face hub, of which the first file of `MODEL_FILES` is downloaded.
    settings
        Further files and patterns to download, if they exist.
    """
    given = Path(name_or_path).expanduser()
    if given.suffix == ".onnx" and given.is_file():
        return given.parent.parent if given.parent.name == "onnx" else given.parent, given
    for names in (MODEL_FILES[:2], MODEL_FILES[2:]):  # the smaller ones only if needed
        weights = tuple(f"{name}{data}" for name in names for data in ("", "_data"))
        folder = find_folder(name_or_path, (*weights, "tokenizer.json", *settings))
        if (model := model_file(folder)) is not None:
            break
    has_tokenizer = (folder / "tokenizer.json").is_file()
    if model is None or not has_tokenizer:
        raise EncoderError(
            f"{name_or_path} needs an ONNX file, such as onnx/model.onnx, and tokenizer.json; it "
            f"lacks {'the model' if model is None else 'tokenizer.json'}."
        )
    return folder, model


def model_file(folder: Path) -> Path | None:
    """The ONNX file of a folder that is used; None if there is none."""
    return next((folder / name for name in MODEL_FILES if (folder / name).is_file()), None)


def new_session(model: Path) -> Any:
    """A session of onnxruntime that uses one thread."""
    try:
        import onnxruntime
    except ImportError:
        raise EncoderError(
            f"'onnxruntime' is not installed; install it with: {install_command('onnx')}."
        ) from None
    options = onnxruntime.SessionOptions()
    # One thread per batch is faster than batches that are split among threads.
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def max_positions(folder: Path) -> int | None:
    """Most tokens that a model and its tokenizer state; None if they state no limit."""
    stated = (
        read_json(folder / "config.json").get("max_position_embeddings"),
        read_json(folder / "tokenizer_config.json").get("model_max_length"),
    )
    return min((int(each) for each in stated if each and 0 < each < _UNLIMITED), default=None)


def pad_token(tokenizer: Tokenizer) -> int:
    """Id of the token for padding: the stated one, or that of a usual name."""
    if tokenizer.padding is not None:
        return int(tokenizer.padding["pad_id"])
    ids = (tokenizer.token_to_id(token) for token in ("[PAD]", "<pad>"))
    return next((each for each in ids if each is not None), 0)
