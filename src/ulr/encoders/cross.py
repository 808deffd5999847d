"""The single encoder: a transformer reads a label and a text together and returns one score.

It scores pairs instead of encoding texts; `LabelScores` turns the scores into vectors.
"""

from __future__ import annotations

import copy
import hashlib
import json
import threading
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ulr.encoders.onnx_files import Floats, OnnxModel, find_model, max_positions, model_file
from ulr.encoders.protocol import CopiedByReference, ModelEncoder, fingerprint
from ulr.encoders.tokenization import CHARACTERS_PER_TOKEN, check_max_tokens, clean_texts
from ulr.encoders.torch import (
    MAX_TOKENS,
    load_transformer,
    model_fingerprint,
    placement,
    tokenizer_and_limit,
)
from ulr.encoders.weights import absolute_name, model_errors, read_json
from ulr.errors import EncoderError
from ulr.files import sha256

_MOST_PAIRS = 4096  # tokens of more pairs would take much memory
_POSITIVE_NAMES = {"positive", "yes", "true", "relevant", "related", "match", "1"}


@runtime_checkable
class PairScorer(Protocol):
    """Any object that scores every text with every label."""

    def score(self, texts: list[str], labels: list[str], /) -> Any:
        """Scores, (n_texts, n_labels); higher if the label fits better."""
        ...


class CrossEncoder(ModelEncoder):
    """A single encoder: a transformer with a classification head scores pairs of label and text.

    The score depends on the outputs of the head. One output is the score itself. With two, it is
    the positive one minus the other; the names in the model's config tell which one is positive,
    otherwise it is the second. With three, it is the one named entailment. Other heads are refused.

    A pair is ``[CLS] label [SEP] text [SEP]``. If an output is named entailment, the text is the
    premise and comes first. Only the text is truncated. Threads may share it.

    Parameters
    ----------
    name_or_path
        A folder, or the name of a model on the Hugging Face hub. Safetensors are run by PyTorch; a
        folder with ``model.onnx`` and ``tokenizer.json`` alone, or any model where PyTorch is not
        installed, by onnxruntime. No pickled weights are read and no code of the model is run.
    max_tokens
        Tokens of a pair that are used, special ones included. Texts are cut to 1,000 characters
        per token before.
    device, batch_size
        As for `TransformerEncoder`. An ONNX model runs on the CPU, in batches of its own.
    """

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        max_tokens: int = MAX_TOKENS,
        device: str | None = None,
        batch_size: int | None = None,
    ) -> None:
        self._model: TorchPairs | OnnxPairs
        if not uses_onnx(name_or_path):
            self._model = TorchPairs(name_or_path, device, batch_size)
        elif device in (None, "cpu") and batch_size is None:
            self._model = OnnxPairs(name_or_path)
        else:
            raise EncoderError(
                f"{name_or_path} is an ONNX model, which runs on the CPU in batches of its own; got "
                f"device={device!r}, batch_size={batch_size}."
            )
        model, given_name = self._model, str(name_or_path)
        check_max_tokens(max_tokens, model.tokenizer, model.limit, given_name, pair=True)
        self._positive, self._negative, self._text_first = _read_head(model.outputs, given_name)
        model.truncate(max_tokens, "only_first" if self._text_first else "only_second")
        self.max_tokens, self.device = max_tokens, self._model.device
        self.batch_texts = 32 if self.device == "cpu" else 512
        self.fingerprint = f"cross {self._model.fingerprint}, {max_tokens} tokens"
        name = absolute_name(name_or_path)
        self.spec = f"cross:{name}" if max_tokens == MAX_TOKENS else None
        self._again = partial(
            type(self), name, max_tokens=max_tokens, device=device, batch_size=batch_size
        )

    def score(self, texts: list[str], labels: list[str], /) -> Floats:
        """Score of every text with every label, (n_texts, n_labels)."""
        if not texts or not labels:
            raise EncoderError(f"there are no {'labels' if texts else 'texts'} to score.")
        is_cut = np.array([len(text) > CHARACTERS_PER_TOKEN * self.max_tokens for text in texts])
        texts = clean_texts(texts, self.max_tokens, self._model.truncation_side)
        labels = clean_texts(labels, self.max_tokens)
        needed = self._check_labels(labels)
        is_long = self._n_tokens(texts) + needed > self.max_tokens
        self._count_truncated(int((is_cut | is_long).sum()))
        scores = np.empty((len(texts), len(labels)), dtype=np.float32)
        step = max(1, _MOST_PAIRS // len(labels))
        for start in range(0, len(texts), step):
            pairs = [(label, text) for text in texts[start : start + step] for label in labels]
            if self._text_first:
                pairs = [(text, label) for label, text in pairs]
            logits = self._model.logits(pairs)
            found = logits[:, self._positive]
            if self._negative is not None:
                found = found - logits[:, self._negative]
            scores[start : start + step] = found.reshape(-1, len(labels))
        return scores

    def _check_labels(self, labels: list[str]) -> int:
        """Tokens of the longest label and of what joins a pair; they must leave some to the text."""
        n_tokens = self._n_tokens(labels) + self._model.tokenizer.num_special_tokens_to_add(True)
        longest = int(n_tokens.argmax())
        if (needed := int(n_tokens[longest])) >= self.max_tokens:
            label = labels[longest]
            shown = label if len(label) <= 40 else f"{label[:39]}…"
            raise EncoderError(
                f"the label {shown!r} takes {needed} of the {self.max_tokens} tokens of a pair "
                "and leaves none to the text; shorten it, or increase max_tokens."
            )
        return needed

    def _n_tokens(self, texts: list[str]) -> NDArray[np.int64]:
        encoded = self._model.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return np.array([len(each.ids) for each in encoded])


class LabelScores(CopiedByReference):
    """An encoder whose vectors are scores or probabilities of labels, from a scorer of pairs.

    The score of a label is the mean over its phrases. Vectors are the softmax of the scores of the
    labels, or else the scores minus their mean, which are log ratios of the probabilities. Threads
    may share it if they may share the scorer.
    """

    def __init__(
        self, scorer: PairScorer, phrases: list[list[str]], probabilities: bool = True
    ) -> None:
        if not phrases or not all(phrases):
            raise EncoderError(
                "scoring needs at least one label, and at least one phrase for each; "
                f"got {phrases!r}."
            )
        self.scorer, self.phrases, self.probabilities = scorer, phrases, probabilities
        self.n_dims = len(phrases)
        self.batch_texts = int(getattr(scorer, "batch_texts", 32))
        content = hashlib.sha256(json.dumps(phrases).encode()).hexdigest()[:16]
        form = "labels" if probabilities else "log ratios of labels"
        self.fingerprint = f"{fingerprint(scorer)}, {form} {content}"

    @property
    def truncated(self) -> int:
        """Texts truncated by the scorer so far."""
        return int(getattr(self.scorer, "truncated", 0))

    def encode(self, texts: list[str], /) -> Floats:
        """Probabilities of the labels or their log ratios, (n_texts, n_labels)."""
        unique = dict.fromkeys(phrase for each in self.phrases for phrase in each)
        columns = {phrase: column for column, phrase in enumerate(unique)}
        scores = np.asarray(self.scorer.score(texts, list(columns)))
        if scores.shape != (len(texts), len(columns)) or scores.dtype.kind != "f":
            raise EncoderError(
                f"{type(self.scorer).__name__}.score must return float scores of shape "
                f"({len(texts)}, {len(columns)}) for {len(texts)} texts and {len(columns)} labels; "
                f"got shape {scores.shape} of {scores.dtype}."
            )
        of_labels = [
            scores[:, [columns[phrase] for phrase in each]].mean(axis=1, dtype=np.float64)
            for each in self.phrases
        ]
        scores = np.stack(of_labels, axis=1)
        if not self.probabilities:
            return (scores - scores.mean(axis=1, keepdims=True)).astype(np.float32)
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        return (exponentials / exponentials.sum(axis=1, keepdims=True)).astype(np.float32)


def uses_onnx(name_or_path: str | Path) -> bool:
    """Whether a pair scorer is run by onnxruntime: it has no other weights, or PyTorch is missing.

    It is a folder, an ONNX file, or the name of a model on the Hugging Face hub.
    """
    has_torch = all(map(find_spec, ("torch", "sentence_transformers")))
    folder = Path(name_or_path).expanduser()
    if not folder.is_dir():
        return not has_torch or folder.suffix == ".onnx"
    return model_file(folder) is not None and not (has_torch and any(folder.glob("*.safetensors")))


class TorchPairs:
    """A model of sentence-transformers, of which the outputs are taken without an activation."""

    def __init__(
        self, name_or_path: str | Path, device: str | None, batch_size: int | None
    ) -> None:
        self._model, folder = load_transformer("CrossEncoder", name_or_path, device)
        self.device, self._batch_size = placement(self._model, batch_size)
        self.tokenizer, self.limit = tokenizer_and_limit(self._model)
        self.truncation_side: str = self._model.tokenizer.truncation_side
        self.fingerprint = model_fingerprint(folder)
        names = self._model.config.id2label
        self.outputs = tuple(str(names[i]).lower() for i in range(self._model.num_labels))
        self._lock = threading.Lock()  # a tokenizer of transformers has state

    def truncate(self, max_tokens: int, strategy: str) -> None:
        """Set the tokens of a pair, and which part of it is truncated."""
        self._model.max_seq_length = max_tokens
        self._model[0].processing_kwargs = {"text": {"truncation": strategy}}

    def logits(self, pairs: list[tuple[str, str]]) -> Floats:
        """Outputs of the head, (n_pairs, n_outputs)."""
        from torch.nn import Identity

        with self._lock, model_errors(f"pairs cannot be scored on {self.device}"):
            found = self._model.predict(
                pairs,
                batch_size=self._batch_size,
                show_progress_bar=False,
                activation_fn=Identity(),
            )
        return np.asarray(found, dtype=np.float32).reshape(len(pairs), -1)


class OnnxPairs:
    """A classification head on onnxruntime, on the CPU. Threads may share it.

    Names of the outputs are read from ``config.json``. An int8 model rounds by the largest value of
    a batch, so that its outputs depend a little on the other pairs.
    """

    device = "cpu"

    def __init__(self, name_or_path: str | Path) -> None:
        name = str(name_or_path)
        folder, model = find_model(name_or_path, ("config.json", "tokenizer_config.json"))
        tokenizer = folder / "tokenizer.json"
        self._model = OnnxModel(model, tokenizer)
        self.tokenizer = self._model.tokenizer
        self._truncating = copy.deepcopy(self.tokenizer)
        with model_errors(f"{name} cannot be loaded"):
            names = read_json(folder / "config.json").get("id2label", {})
            side = read_json(folder / "tokenizer_config.json").get("truncation_side", "right")
            self.limit = max_positions(folder)
        self.truncation_side = str(side)
        self.fingerprint = f"{sha256(model)[:16]} {sha256(tokenizer)[:16]}"
        with model_errors(f"{name} cannot be used to score pairs"):
            shape = self.logits([("", ""), ("a", "")]).shape
        if len(shape) != 2:
            raise EncoderError(
                f"{name} is not a model that scores pairs: its first output has shape "
                f"{shape} for two pairs, where (2, n_outputs) is expected."
            )
        numbers = range(shape[1])
        self.outputs = tuple(str(names.get(str(i), f"label_{i}")).lower() for i in numbers)

    def truncate(self, max_tokens: int, strategy: str) -> None:
        """Set the tokens of a pair, and which part of it is truncated."""
        self._truncating.enable_truncation(
            max_tokens, strategy=strategy, direction=self.truncation_side
        )

    def logits(self, pairs: list[tuple[str, str]]) -> Floats:
        """Outputs of the head, (n_pairs, n_outputs)."""
        encoded = self._truncating.encode_batch_fast(pairs)
        return self._model.run(encoded, self._model.outputs[0])


def _read_head(names: tuple[str, ...], model: str) -> tuple[int, int | None, bool]:
    """Outputs that raise and lower the score, and whether the text comes before the label."""
    entailment = next((i for i, name in enumerate(names) if name.startswith("entail")), None)
    if len(names) == 1:
        return 0, None, False
    if len(names) == 2:
        named = next((i for i, name in enumerate(names) if name in _POSITIVE_NAMES), 1)
        positive = named if entailment is None else entailment
        return positive, 1 - positive, entailment is not None
    if len(names) == 3 and entailment is not None:
        return entailment, None, True
    raise EncoderError(
        f"{model} has {len(names)} outputs ({', '.join(names)}); a score needs one output, "
        "two, or three with one named entailment."
    )
