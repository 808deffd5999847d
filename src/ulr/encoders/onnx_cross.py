"""Pair scorers on onnxruntime, without PyTorch; `CrossEncoder` chooses them for ONNX files."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from ulr.cores import available_cores
from ulr.encoders.batching import padded_inputs
from ulr.encoders.onnx_files import find_model, max_positions, model_file, new_session, pad_token
from ulr.encoders.pretrained import checked_max_tokens, model_errors, read_json
from ulr.errors import EncoderError
from ulr.files import sha256

_BATCH_TOKENS = 512


def uses_onnx(name_or_path: str | Path) -> bool:
    """Whether a pair scorer is run by onnxruntime: it has no other weights, or PyTorch is missing.

    Parameters
    ----------
    name_or_path
        A folder, an ONNX file, or the name of a model on the Hugging Face hub.
    """
    has_torch = all(find_spec(package) is not None for package in ("torch", "transformers"))
    folder = Path(name_or_path).expanduser()
    if not folder.is_dir():
        return not has_torch or folder.suffix == ".onnx"
    return model_file(folder) is not None and not (has_torch and any(folder.glob("*.safetensors")))


class OnnxPairModel:
    """A classification head on onnxruntime, with its tokenizer.

    Threads may share it. An int8 model rounds by the largest value of a batch, so that its outputs
    depend a little on the other pairs.

    Parameters
    ----------
    name_or_path
        A folder with an ONNX file, such as ``onnx/model.onnx``, and ``tokenizer.json``, or the name
        of a model on the Hugging Face hub. Names of the outputs are read from ``config.json``.
    batch_tokens
        Tokens of a batch; None for 512.

    Its attributes are those of `ulr.encoders.cross.PairModel`.
    """

    device = "cpu"

    def __init__(self, name_or_path: str | Path, batch_tokens: int | None = None) -> None:
        if batch_tokens is not None and batch_tokens < 1:
            raise EncoderError(f"batch_tokens must be at least 1; got {batch_tokens}.")
        self.name = str(name_or_path)
        self.batch_tokens = batch_tokens or _BATCH_TOKENS
        folder, model = find_model(name_or_path, ("config.json", "tokenizer_config.json"))
        tokenizer = folder / "tokenizer.json"
        with model_errors(f"{self.name} cannot be loaded"):
            self._session = new_session(model)
            self.tokenizer = Tokenizer.from_file(str(tokenizer))
            names = read_json(folder / "config.json").get("id2label", {})
            side = read_json(folder / "tokenizer_config.json").get("truncation_side", "right")
            self._max_positions = max_positions(folder)
        self.truncation_side = str(side)
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._pad = pad_token(self.tokenizer)
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.fingerprint = f"{sha256(model)[:16]} {sha256(tokenizer)[:16]}"
        with model_errors(f"{self.name} cannot be used to score pairs"):
            probe = self._logits(self.tokenizer.encode_batch_fast([("", ""), ("a", "")]))
        if probe.ndim != 2:
            raise EncoderError(
                f"{self.name} is not a model that scores pairs: its first output has shape "
                f"{probe.shape} for two pairs, where (2, n_outputs) is expected."
            )
        numbers = range(probe.shape[1])
        self.outputs = tuple(str(names.get(str(i), f"label_{i}")).lower() for i in numbers)

    def choose_max_tokens(self, requested: int) -> int:
        """The requested number of tokens of a pair, if it is possible."""
        return checked_max_tokens(
            requested, self.tokenizer, self._max_positions, self.name, pair=True
        )

    def logits(self, batches: list[list[Encoding]]) -> Iterator[NDArray[np.float32]]:
        """Outputs of each batch, (n_pairs_in_batch, n_outputs); batches run on all cores."""
        with ThreadPoolExecutor(min(available_cores(), max(1, len(batches)))) as pool:
            yield from pool.map(self._logits, batches)

    def _logits(self, batch: list[Encoding]) -> NDArray[np.float32]:
        inputs = padded_inputs(batch, self._pad)
        found = self._session.run(None, {name: inputs[name] for name in self._inputs})[0]
        return np.asarray(found, dtype=np.float32)
