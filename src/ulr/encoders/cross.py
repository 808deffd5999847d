"""The single encoder: a transformer reads a label and a text together and returns one score.

It scores pairs instead of encoding texts; `LabelScores` turns the scores into vectors. The
transformer runs on PyTorch or, from ONNX files, on onnxruntime.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from ulr.encoders.batching import batches_by_length
from ulr.encoders.counters import Counter
from ulr.encoders.onnx_cross import OnnxPairModel, uses_onnx
from ulr.encoders.pretrained import (
    MAX_TOKENS,
    SINGLE,
    Pretrained,
    absolute_name,
    clean_texts,
    find_model,
    model_errors,
)
from ulr.encoders.protocol import CopiedByReference, fingerprint
from ulr.errors import EncoderError

_BATCH_PAIRS = 4096
_POSITIVE_NAMES = {"positive", "yes", "true", "relevant", "related", "match", "1"}


@runtime_checkable
class PairScorer(Protocol):
    """Any object that scores every text with every label."""

    def score(self, texts: list[str], labels: list[str], /) -> Any:
        """Scores, (n_texts, n_labels); higher if the label fits better."""
        ...


class PairModel(Protocol):
    """A transformer with a classification head, on PyTorch or onnxruntime.

    Attributes
    ----------
    name
        Name of the model in messages.
    tokenizer
        The tokenizer, without padding and truncation.
    truncation_side
        The side on which the tokenizer truncates.
    fingerprint
        Hashes of its weights and its vocabulary.
    batch_tokens
        Most tokens of a batch.
    outputs
        Names of the outputs of the head, in lower case.
    device
        The device that it runs on.
    """

    name: str
    tokenizer: Tokenizer
    truncation_side: str
    fingerprint: str
    batch_tokens: int
    outputs: tuple[str, ...]
    device: str

    def choose_max_tokens(self, requested: int) -> int:
        """The requested number of tokens of a pair, if it is possible."""
        ...

    def logits(self, batches: list[list[Encoding]]) -> Iterable[NDArray[np.float32]]:
        """Outputs of each batch, (n_pairs_in_batch, n_outputs)."""
        ...


class CrossEncoder(CopiedByReference):
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
    lowercase
        Whether texts and labels are lower-cased.
    device, precision, batch_tokens
        As for `TransformerEncoder`. An ONNX model runs on the CPU in the precision of its file.

    Attributes
    ----------
    truncated
        Texts truncated so far.
    """

    batch_texts = 32
    languages: tuple[str, ...] | None = None

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        max_tokens: int = MAX_TOKENS,
        lowercase: bool = False,
        device: str | None = None,
        precision: str | None = None,
        batch_tokens: int | None = None,
    ) -> None:
        placement: dict[str, Any] = {
            "device": device,
            "precision": precision,
            "batch_tokens": batch_tokens,
        }
        self._model = _load_model(name_or_path, **placement)
        self._head = _read_head(self._model)
        self.max_tokens = self._model.choose_max_tokens(max_tokens)
        self.lowercase = lowercase
        self._pairs = copy.deepcopy(self._model.tokenizer)
        self._pairs.enable_truncation(
            self.max_tokens,
            strategy="only_first" if self._head.text_first else "only_second",
            direction=self._model.truncation_side,
        )
        self._truncated = Counter()
        with model_errors(f"{name_or_path} cannot be used to score pairs"):
            list(self._model.logits([self._pairs.encode_batch_fast([("", ""), ("a", "")])]))
        self.device = self._model.device
        if self.device != "cpu":
            self.batch_texts = 512
        self.fingerprint = f"cross {self._model.fingerprint}, {self.max_tokens} tokens"
        self.fingerprint += ", lower case" * lowercase
        name = absolute_name(name_or_path)
        self.spec = f"cross:{name}" if max_tokens == MAX_TOKENS and not lowercase else None
        self._again = partial(
            type(self), name, max_tokens=max_tokens, lowercase=lowercase, **placement
        )

    @property
    def truncated(self) -> int:
        """Texts truncated so far."""
        return self._truncated.value

    def score(self, texts: list[str], labels: list[str], /) -> NDArray[np.float32]:
        """Score of every text with every label, (n_texts, n_labels)."""
        if not texts or not labels:
            raise EncoderError(f"there are no {'labels' if texts else 'texts'} to score.")
        labels = clean_texts(labels, self.lowercase, self.max_tokens)
        texts = clean_texts(texts, self.lowercase, self.max_tokens, self._model.truncation_side)
        self._refuse_long(labels)
        n_pairs = len(texts) * len(labels)
        scores = np.empty(n_pairs, dtype=np.float32)
        truncated = np.zeros(len(texts), dtype=bool)
        for start in range(0, n_pairs, _BATCH_PAIRS):
            pairs = np.arange(start, min(start + _BATCH_PAIRS, n_pairs))
            of_text, of_label = np.divmod(pairs, len(labels))
            encoded = self._encoded([texts[i] for i in of_text], [labels[i] for i in of_label])
            truncated[of_text[[bool(each.overflowing) for each in encoded]]] = True
            lengths = [len(each.ids) for each in encoded]
            batches = list(batches_by_length(lengths, self._model.batch_tokens))
            outputs = self._model.logits([[encoded[i] for i in batch] for batch in batches])
            for batch, logits in zip(batches, outputs, strict=True):
                scores[pairs[batch]] = self._head.scores(logits)
        self._truncated.add(int(truncated.sum()))
        return scores.reshape(len(texts), len(labels))

    def _encoded(self, texts: list[str], labels: list[str]) -> list[Encoding]:
        """Tokens of each text with its label.

        Pairs are tokenized as pairs: for some tokenizers, their tokens cannot be put together from
        those of each text and label.
        """
        first, second = (texts, labels) if self._head.text_first else (labels, texts)
        return self._pairs.encode_batch_fast(list(zip(first, second, strict=True)))

    def _refuse_long(self, labels: list[str]) -> None:
        """Refuse labels that leave no tokens for the text."""
        tokenizer = self._model.tokenizer
        special = tokenizer.num_special_tokens_to_add(True)
        encoded = tokenizer.encode_batch_fast(labels, add_special_tokens=False)
        for label, tokens in zip(labels, encoded, strict=True):
            if (needed := len(tokens.ids) + special) >= self.max_tokens:
                shown = label if len(label) <= 40 else f"{label[:39]}…"
                raise EncoderError(
                    f"the label {shown!r} takes {needed} of the {self.max_tokens} tokens of a pair "
                    "and leaves none to the text; shorten it, or increase max_tokens."
                )

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, (), {"spec": self.spec, "languages": self.languages}


class LabelScores(CopiedByReference):
    """An encoder whose vectors are scores or probabilities of labels, from a scorer of pairs.

    Threads may share it if they may share the scorer.

    Parameters
    ----------
    scorer
        Scores texts with phrases.
    phrases
        The phrases of each label; the score of a label is the mean over its phrases.
    probabilities
        Whether vectors are the softmax of the scores of the labels. Else they are the scores minus
        their mean, which are log ratios of the probabilities.
    """

    def __init__(
        self, scorer: PairScorer, phrases: list[list[str]], probabilities: bool = True
    ) -> None:
        if not phrases or not all(phrases):
            raise EncoderError(
                "scoring needs at least one label, and at least one phrase for each; "
                f"got {phrases!r}."
            )
        self.scorer = scorer
        self.phrases = phrases
        self.probabilities = probabilities

    @property
    def n_dims(self) -> int:
        """Number of labels."""
        return len(self.phrases)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the scorer and of the phrases."""
        phrases = hashlib.sha256(json.dumps(self.phrases).encode()).hexdigest()[:16]
        form = "labels" if self.probabilities else "log ratios of labels"
        return f"{fingerprint(self.scorer)}, {form} {phrases}"

    @property
    def batch_texts(self) -> int:
        """Texts per call, as for the scorer."""
        return int(getattr(self.scorer, "batch_texts", CrossEncoder.batch_texts))

    @property
    def truncated(self) -> int:
        """Texts truncated by the scorer so far."""
        return int(getattr(self.scorer, "truncated", 0))

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
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


class _TorchPairModel:
    """A classification head on PyTorch; see `PairModel`."""

    def __init__(self, name_or_path: str | Path, **placement: Any) -> None:
        folder = find_model(name_or_path)
        self._model = Pretrained(folder, str(name_or_path), head=SINGLE, **placement)
        self.name = self._model.name
        self.tokenizer: Tokenizer = self._model.tokenizer
        self.truncation_side: str = self._model.truncation_side
        self.fingerprint = self._model.fingerprint
        self.batch_tokens = self._model.batch_tokens
        self.device = str(self._model.device)
        names = self._model.config.id2label
        n_outputs = int(self._model.config.num_labels)
        self.outputs = tuple(str(names.get(i, "")).lower() for i in range(n_outputs))

    def choose_max_tokens(self, requested: int) -> int:
        return self._model.choose_max_tokens(requested, pair=True)

    def logits(self, batches: list[list[Encoding]]) -> Iterator[NDArray[np.float32]]:
        for batch in batches:
            yield self._model.run(batch)[0].logits.float().cpu().numpy()


def _load_model(
    name_or_path: str | Path, device: str | None, precision: str | None, batch_tokens: int | None
) -> PairModel:
    """The model, on the library that its files are for."""
    if not uses_onnx(name_or_path):
        return _TorchPairModel(
            name_or_path, device=device, precision=precision, batch_tokens=batch_tokens
        )
    if device not in (None, "cpu") or precision is not None:
        raise EncoderError(
            f"{name_or_path} is an ONNX model, which runs on the CPU in the precision of its file; "
            f"got device={device!r}, precision={precision!r}."
        )
    return OnnxPairModel(name_or_path, batch_tokens)


@dataclass(frozen=True)
class _Head:
    """Outputs that make up the score, and whether the text comes before the label."""

    positive: int
    negative: int | None = None
    text_first: bool = False

    def scores(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores of pairs, (n_pairs,), from the outputs of the model."""
        scores = logits[:, self.positive]
        return scores if self.negative is None else scores - logits[:, self.negative]


def _read_head(model: PairModel) -> _Head:
    """The kind of head, by the number and the names of its outputs."""
    names = model.outputs
    entailment = next((i for i, name in enumerate(names) if name.startswith("entail")), None)
    if len(names) == 1:
        return _Head(0)
    if len(names) == 2:
        named = next((i for i, name in enumerate(names) if name in _POSITIVE_NAMES), 1)
        positive = named if entailment is None else entailment
        return _Head(positive, 1 - positive, text_first=entailment is not None)
    if len(names) == 3 and entailment is not None:
        return _Head(entailment, text_first=True)
    raise EncoderError(
        f"{model.name} has {len(names)} outputs ({', '.join(names)}); a score needs one output, "
        "two, or three with one named entailment."
    )
