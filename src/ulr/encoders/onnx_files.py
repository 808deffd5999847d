"""ONNX models: which file of a folder is used, and sessions of onnxruntime."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from ulr.encoders.quantisation import quantised
from ulr.encoders.weights import find_folder, model_errors, read_json
from ulr.errors import EncoderError, require
from ulr.threads import available_cores

Floats = NDArray[np.float32]

# In order of preference. A folder with several has float32 weights in the first, and the others
# are the same model in fewer bits.
_PRECISIONS = ("model", "model_fp16", "model_quantized", "model_int8")
MODEL_FILES = tuple(f"{folder}{name}.onnx" for name in _PRECISIONS for folder in ("onnx/", ""))
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_PROVIDERS = ["CPUExecutionProvider"]
# Of a batch, padding included, unless it is a single text: the states stay in the cache of a core. With
# 512 tokens, `minilm` takes 1.05 to 1.1 times the processor time, and in 8 bits 1.15 times.
_BATCH_TOKENS = 256
_UNLIMITED = 1_000_000  # tokenizers state a huge number if they have no limit


def load_runtime() -> Any:
    """The package onnxruntime, without its telemetry: from version 1.29 on it is on by default.

    It writes an identifier of the device when it is imported, unless this variable is set, and
    reports every model that is loaded.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    onnxruntime = require("onnxruntime", "onnx", EncoderError)
    onnxruntime.disable_telemetry_events()  # it may have been imported before
    return onnxruntime


class OnnxModel:
    """A model on onnxruntime, and its tokenizer, which neither pads nor truncates.

    Threads may share it. With `int8`, its products with weights are of integers.
    """

    def __init__(self, model: Path, tokenizer: Path, *, int8: bool = False) -> None:
        onnxruntime = load_runtime()
        options = onnxruntime.SessionOptions()
        # One thread per batch is faster than batches that are split among threads.
        options.intra_op_num_threads = 1
        with model_errors(f"{model.parent} cannot be loaded"):
            content = quantised(model) if int8 else str(model)
            self._session = onnxruntime.InferenceSession(content, options, _PROVIDERS)
            self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self._inputs = [each.name for each in self._session.get_inputs()]
        if others := sorted(set(self._inputs) - set(_INPUTS)):
            raise EncoderError(
                f"{model} needs the inputs {', '.join(others)}; only {', '.join(_INPUTS)} are "
                "supported."
            )
        self.outputs = [each.name for each in self._session.get_outputs()]
        if self.tokenizer.padding is not None:
            self._pad = int(self.tokenizer.padding["pad_id"])
        else:
            ids = (self.tokenizer.token_to_id(token) for token in ("[PAD]", "<pad>"))
            self._pad = next((each for each in ids if each is not None), 0)
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    def run(
        self,
        encoded: Sequence[Encoding],
        output: str,
        pool: Callable[[Floats, NDArray[np.int64]], Floats] = lambda states, mask: states,
    ) -> Floats:
        """An output for tokenized texts, one row each; batches of similar length on all cores.

        `pool` gets the output of a batch and the mask of the tokens that are not padding.
        """

        def run_batch(batch: NDArray[np.intp]) -> Floats:
            inputs = _padded([encoded[index] for index in batch], self._pad)
            (found,) = self._session.run([output], {name: inputs[name] for name in self._inputs})
            return pool(np.asarray(found, dtype=np.float32), inputs["attention_mask"])

        batches = _batches([len(each.ids) for each in encoded])[::-1]  # the longest first
        if len(batches) == 1:  # to count the cores takes as long as to encode some texts
            found = [run_batch(batches[0])]
        else:
            with ThreadPoolExecutor(min(available_cores(), len(batches))) as threads:
                found = list(threads.map(run_batch, batches))
        rows = np.empty((len(encoded), *found[0].shape[1:]), dtype=np.float32)
        for batch, each in zip(batches, found, strict=True):
            rows[batch] = each
        return rows


def _batches(lengths: list[int]) -> list[NDArray[np.intp]]:
    """Indices of texts of similar length, shortest first, so that few tokens are padding."""
    order = np.argsort(lengths, kind="stable")
    batches, start = list[NDArray[np.intp]](), 0
    while start < len(order):
        end = start + 1
        while end < len(order) and lengths[order[end]] * (end + 1 - start) <= _BATCH_TOKENS:
            end += 1
        batches.append(order[start:end])
        start = end
    return batches


def _padded(batch: list[Encoding], pad: int) -> dict[str, NDArray[np.int64]]:
    """Inputs of a transformer for tokenized texts, padded to the longest, (n_texts, n_tokens)."""
    longest = max(len(each.ids) for each in batch)
    for each in batch:
        each.pad(longest, pad_id=pad)
    rows = [(each.ids, each.attention_mask, each.type_ids) for each in batch]
    return dict(zip(_INPUTS, np.array(rows, dtype=np.int64).swapaxes(0, 1), strict=True))


def find_model(name_or_path: str | Path, settings: tuple[str, ...]) -> tuple[Path, Path]:
    """The folder of a model, and the ONNX file in it that is used.

    `name_or_path` is a folder, an ONNX file in it or in its subfolder ``onnx``, or the name of a
    model on the Hugging Face hub, of which the first file of `MODEL_FILES` is downloaded, with the
    files and patterns of `settings`, if they exist.
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


def max_positions(folder: Path) -> int | None:
    """Most tokens that a model and its tokenizer state; None if they state no limit."""
    stated = (
        read_json(folder / "config.json").get("max_position_embeddings"),
        read_json(folder / "tokenizer_config.json").get("model_max_length"),
    )
    return min((int(each) for each in stated if each and 0 < each < _UNLIMITED), default=None)
