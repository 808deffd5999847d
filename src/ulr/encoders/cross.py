"""The single encoder: a transformer reads a label and a text together and gives one score.

It scores pairs rather than encoding texts; `LabelScores` makes vectors of the scores.
"""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from tokenizers import Encoding

from ulr.encoders.lengths import alike_in_length
from ulr.encoders.pretrained import (
    MAX_TOKENS,
    Pretrained,
    cleaned,
    find_model,
    model_name,
    unusable,
)
from ulr.encoders.protocol import fingerprint
from ulr.errors import EncoderError

_PAIRS_AT_A_TIME = 4096
_NAMES_OF_YES = {"positive", "yes", "true", "relevant", "related", "match", "1"}


@runtime_checkable
class PairScorer(Protocol):
    """Anything that scores every text with every label."""

    def score(self, texts: list[str], labels: list[str], /) -> Any:
        """Scores, (n_texts, n_labels); higher where the label fits better."""
        ...


class CrossEncoder:
    """A single encoder: every pair of label and text through a transformer with a scoring head.

    The head is told by its outputs. One output is the score. Of two, the score is the one that
    means yes less the other; the names in the model's config tell which, else it is the second.
    Of three, it is the one named entailment, and other heads are refused.

    A pair is ``[CLS] label [SEP] text [SEP]``. Heads with an output named entailment were trained
    with the text as premise and the label as hypothesis, so for them the text comes first. In both
    orders only the text is cut when a pair is too long.

    Parameters
    ----------
    name_or_path
        A folder, or the name of a model on the Hugging Face hub. Only safetensors are read, and no
        code of the model's own is run.
    max_tokens
        Tokens of a pair that are used, special ones included.
    lowercase
        Whether texts and labels are lower-cased first.
    device, precision, tokens_at_a_time
        As for `TransformerEncoder`.

    Attributes
    ----------
    truncated
        Texts cut so far.
    """

    texts_at_a_time = 32

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        max_tokens: int = MAX_TOKENS,
        lowercase: bool = False,
        device: str | None = None,
        precision: str | None = None,
        tokens_at_a_time: int | None = None,
    ) -> None:
        where: dict[str, Any] = {
            "device": device,
            "precision": precision,
            "tokens_at_a_time": tokens_at_a_time,
        }
        self._model = Pretrained(
            find_model(name_or_path),
            str(name_or_path),
            head="AutoModelForSequenceClassification",
            **where,
        )
        self._head = _read_head(self._model)
        self.max_tokens = self._model.allowed_tokens(max_tokens, pair=True)
        self.lowercase = lowercase
        self._whole = self._model.tokenizer
        self._pairs = copy.deepcopy(self._whole)
        self._pairs.enable_truncation(
            self.max_tokens,
            strategy="only_first" if self._head.text_first else "only_second",
            direction=self._model.truncation_side,
        )
        self.truncated = 0
        with unusable(f"{name_or_path} cannot be used to score pairs"):
            self._scores(self._pairs.encode_batch_fast([("", ""), ("a", "")]))
        self.device = str(self._model.device)
        if self._model.device.type != "cpu":
            self.texts_at_a_time = 512
        self.fingerprint = f"cross {self._model.fingerprint}, {self.max_tokens} tokens" + (
            ", lower case" if lowercase else ""
        )
        name = model_name(name_or_path)
        self.spec = f"cross:{name}" if max_tokens == MAX_TOKENS and not lowercase else None
        self._again = partial(type(self), name, max_tokens=max_tokens, lowercase=lowercase, **where)

    def score(self, texts: list[str], labels: list[str], /) -> NDArray[np.float32]:
        """Score of every text with every label, (n_texts, n_labels)."""
        if not texts or not labels:
            raise EncoderError(f"there are no {'labels' if texts else 'texts'} to score.")
        texts, labels = cleaned(texts, self.lowercase), cleaned(labels, self.lowercase)
        self._refuse_long(labels)
        n_pairs = len(texts) * len(labels)
        scores = np.empty(n_pairs, dtype=np.float32)
        cut = np.zeros(len(texts), dtype=bool)
        for start in range(0, n_pairs, _PAIRS_AT_A_TIME):
            numbers = np.arange(start, min(start + _PAIRS_AT_A_TIME, n_pairs))
            of_text, of_label = np.divmod(numbers, len(labels))
            encoded = self._encoded([texts[i] for i in of_text], [labels[i] for i in of_label])
            cut[of_text[[bool(each.overflowing) for each in encoded]]] = True
            lengths = [len(each.ids) for each in encoded]
            for places in alike_in_length(lengths, self._model.tokens_at_a_time):
                scores[numbers[places]] = self._scores([encoded[place] for place in places])
        self.truncated += int(cut.sum())
        return scores.reshape(len(texts), len(labels))

    def _encoded(self, texts: list[str], labels: list[str]) -> list[Encoding]:
        """Tokens of each text with the label beside it.

        Pairs go to the tokenizer as they are: what it puts between the two, and how it tells one
        from the other, cannot be had from the tokens of each alone for every tokenizer.
        """
        first, second = (texts, labels) if self._head.text_first else (labels, texts)
        return self._pairs.encode_batch_fast(list(zip(first, second, strict=True)))

    def _scores(self, batch: list[Encoding]) -> NDArray[np.float32]:
        logits = self._model.run(batch)[0].logits.float().cpu().numpy()
        scores = logits[:, self._head.yes]
        return scores if self._head.no is None else scores - logits[:, self._head.no]

    def _refuse_long(self, labels: list[str]) -> None:
        """Refuse labels that leave no room for a text."""
        special = self._whole.num_special_tokens_to_add(True)
        encoded = self._whole.encode_batch_fast(labels, add_special_tokens=False)
        for label, tokens in zip(labels, encoded, strict=True):
            if (needed := len(tokens.ids) + special) >= self.max_tokens:
                raise EncoderError(
                    f"the label {_shortened(label)!r} takes {needed} of the {self.max_tokens} "
                    "tokens of a pair and leaves none to the text; shorten it, or raise max_tokens."
                )

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, ()


class LabelScores:
    """An encoder whose vectors are the probabilities of labels, from a scorer of pairs.

    Parameters
    ----------
    scorer
        Scores texts with phrases.
    phrases
        The phrases of each label; the label's score is the mean over them.
    """

    def __init__(self, scorer: PairScorer, phrases: list[list[str]]) -> None:
        if not phrases or not all(phrases):
            raise EncoderError(
                "scoring needs at least one label, and at least one phrase for each; "
                f"got {phrases!r}."
            )
        self.scorer = scorer
        self.phrases = phrases

    @property
    def n_dims(self) -> int:
        """Labels, of which each is a dimension."""
        return len(self.phrases)

    @property
    def fingerprint(self) -> str:
        """The scorer's, and the phrases."""
        written = json.dumps(self.phrases).encode()
        own = fingerprint(self.scorer)
        return f"{own}, labels {hashlib.sha256(written).hexdigest()[:16]}"

    @property
    def texts_at_a_time(self) -> int:
        """As many as the scorer takes."""
        return int(getattr(self.scorer, "texts_at_a_time", CrossEncoder.texts_at_a_time))

    @property
    def truncated(self) -> int:
        """Texts that the scorer has cut so far."""
        return int(getattr(self.scorer, "truncated", 0))

    def encode(self, texts: list[str], /) -> NDArray[np.float32]:
        """Probabilities of the labels, (n_texts, n_labels), each row adding up to one."""
        places = {phrase: place for place, phrase in enumerate(self._distinct())}
        scores = np.asarray(self.scorer.score(texts, list(places)))
        if scores.shape != (len(texts), len(places)) or scores.dtype.kind != "f":
            raise EncoderError(
                f"{type(self.scorer).__name__}.score must give float scores of shape "
                f"({len(texts)}, {len(places)}) for {len(texts)} texts and {len(places)} labels; "
                f"got shape {scores.shape} of {scores.dtype}."
            )
        of_labels = [
            scores[:, [places[phrase] for phrase in each]].mean(axis=1, dtype=np.float64)
            for each in self.phrases
        ]
        return softmax(np.stack(of_labels, axis=1), axis=1).astype(np.float32)

    def _distinct(self) -> list[str]:
        return list(dict.fromkeys(phrase for each in self.phrases for phrase in each))


@dataclass(frozen=True)
class _Head:
    """Which outputs make the score, and which of text and label the model reads first."""

    yes: int
    no: int | None = None
    text_first: bool = False


def _read_head(model: Pretrained) -> _Head:
    """The kind of head, by the number and the names of its outputs."""
    n_outputs = int(model.config.num_labels)
    names = [str(model.config.id2label.get(i, "")).lower() for i in range(n_outputs)]
    entailment = next((i for i, name in enumerate(names) if name.startswith("entail")), None)
    if n_outputs == 1:
        return _Head(0)
    if n_outputs == 2:
        named = next((i for i, name in enumerate(names) if name in _NAMES_OF_YES), 1)
        yes = named if entailment is None else entailment
        return _Head(yes, 1 - yes, text_first=entailment is not None)
    if n_outputs == 3 and entailment is not None:
        return _Head(entailment, text_first=True)
    raise EncoderError(
        f"{model.name} has {n_outputs} outputs ({', '.join(names)}); a score needs one output, "
        "two, or three with one named entailment."
    )


def _shortened(label: str) -> str:
    return label if len(label) <= 40 else f"{label[:39]}…"
