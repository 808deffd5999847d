"""The models that are trained: the dual and the single encoder, on transformers.

Saved folders load with the encoders ``hf:`` and ``cross:``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ulr.encoders.batching import batches_by_length
from ulr.encoders.pretrained import DUAL, SINGLE, Pretrained, find_model, require_torch
from ulr.encoders.tokenization import replace_surrogates
from ulr.encoders.transformer import mean_pooling
from ulr.train.instances import TrainingBatch
from ulr.train.losses import MARGIN, OBJECTIVES, binary_cross_entropy

if TYPE_CHECKING:
    import torch

_BATCH_TOKENS = {"cpu": 512, "cuda": 65536, "mps": 16384}


class TrainableModel(ABC):
    """A transformer with its tokenizer.

    Parameters
    ----------
    base
        A folder, or the name of a model on the Hugging Face hub.
    head
        The class of transformers that loads it.
    max_tokens
        Tokens that are read of a text.
    device
        ``cpu``, ``cuda``, ``cuda:N`` or ``mps``; None for the fastest one.
    random_state
        Seed of the weights of a new head.
    """

    def __init__(
        self, base: str | Path, head: str, max_tokens: int, device: str | None, random_state: int
    ) -> None:
        require_torch()
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(random_state)
            self._pretrained = Pretrained(
                find_model(base),
                str(base),
                head=head,
                new_outputs=1,
                device=device,
                precision="float32",
            )
        self.model, self.device = self._pretrained.model, self._pretrained.device
        self.fingerprint = self._pretrained.fingerprint
        self.max_tokens = self._pretrained.choose_max_tokens(max_tokens, pair=head == SINGLE)
        self._tokenizer = self._pretrained.tokenizer

    def _run(self, texts: Sequence[Any], read: Callable[..., torch.Tensor]) -> torch.Tensor:
        """Apply `read` to texts or pairs, grouped by length.

        Most names of categories are short; padded to the longest, most of a batch would be padding.
        """
        import torch

        encoded = self._tokenizer.encode_batch_fast(list(texts))
        lengths = [len(each.ids) for each in encoded]
        groups = list(batches_by_length(lengths, _BATCH_TOKENS[self.device.type]))
        outputs = [
            read(self._pretrained.inputs([encoded[index] for index in group])) for group in groups
        ]
        inverse = np.argsort(np.concatenate(groups), kind="stable")
        return torch.cat(outputs)[torch.from_numpy(inverse).to(self.device)]

    @abstractmethod
    def compare(self, batch: TrainingBatch) -> torch.Tensor:
        """Scores or distances of each text and its categories, (n_texts, n_categories)."""

    @abstractmethod
    def loss(self, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The loss of the values of `compare`."""

    def scores(self, values: torch.Tensor) -> torch.Tensor:
        """The values of `compare`, negated if lower is better."""
        return values

    def save(self, folder: Path) -> None:
        """Save the model and its tokenizer with transformers."""
        self._pretrained.save(folder)


class DualEncoder(TrainableModel):
    """Encodes texts and categories with the same transformer and mean pooling.

    Parameters
    ----------
    base, max_tokens, device, random_state
        As for `TrainableModel`.
    objective
        One of `OBJECTIVES`.
    margin
        γ of the contrastive hinge loss.
    """

    def __init__(
        self,
        base: str | Path,
        *,
        objective: str = "dot",
        max_tokens: int = 128,
        device: str | None = None,
        margin: float = MARGIN,
        random_state: int = 1,
    ) -> None:
        super().__init__(base, DUAL, max_tokens, device, random_state)
        self._objective = OBJECTIVES[objective]
        self._loss_options = {"margin": margin} if objective == "l2" else {}

    def vectors(self, texts: list[str]) -> torch.Tensor:
        """Mean of the last hidden states of each text, (n_texts, n_dims)."""
        self._tokenizer.enable_truncation(self.max_tokens)
        return self._run([replace_surrogates(text) for text in texts], self._pooled)

    def _pooled(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        states = self.model(**inputs).last_hidden_state
        return mean_pooling(states.float(), inputs["attention_mask"])

    def compare(self, batch: TrainingBatch) -> torch.Tensor:
        """Dot products or squared distances, (n_texts, n_categories)."""
        import torch

        indices = torch.from_numpy(batch.indices).to(self.device)
        categories = self.vectors(batch.categories)[indices]
        return self._objective.compare(self.vectors(batch.texts), categories)

    def loss(self, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Binary cross entropy, or the contrastive hinge loss."""
        return self._objective.loss(values, mask, **self._loss_options)

    def scores(self, values: torch.Tensor) -> torch.Tensor:
        """Dot products, or negative distances."""
        return values if self._objective.higher_is_better else -values


class SingleEncoder(TrainableModel):
    """Scores pairs, ``[CLS] category [SEP] text [SEP]``.

    The score is the output of the base's classification head with one label. Only the text is
    truncated where a pair is too long.

    Parameters
    ----------
    base, max_tokens, device, random_state
        As for `TrainableModel`.
    """

    def __init__(
        self,
        base: str | Path,
        *,
        max_tokens: int = 128,
        device: str | None = None,
        random_state: int = 1,
    ) -> None:
        super().__init__(base, SINGLE, max_tokens, device, random_state)

    def compare(self, batch: TrainingBatch) -> torch.Tensor:
        """Scores, (n_texts, n_categories); 0 for padding."""
        import torch

        rows, columns = np.nonzero(batch.mask)
        names = self._shortened([replace_surrogates(each) for each in batch.categories])
        texts = [replace_surrogates(each) for each in batch.texts]
        pairs = [
            (names[batch.indices[row, column]], texts[row])
            for row, column in zip(rows, columns, strict=True)
        ]
        self._tokenizer.enable_truncation(self.max_tokens, strategy="only_second")
        scores = self._run(pairs, lambda inputs: self.model(**inputs).logits[:, 0].float())
        values = torch.zeros(batch.mask.shape, dtype=scores.dtype, device=self.device)
        values[torch.from_numpy(rows), torch.from_numpy(columns)] = scores
        return values

    def _shortened(self, names: list[str]) -> list[str]:
        """Names of categories, truncated to half of `max_tokens`."""
        self._tokenizer.enable_truncation(self.max_tokens // 2)
        encoded = self._tokenizer.encode_batch(names, add_special_tokens=False)
        return [
            name[: each.offsets[-1][1]] if each.overflowing else name
            for name, each in zip(names, encoded, strict=True)
        ]

    def loss(self, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Binary cross entropy."""
        return binary_cross_entropy(values, mask)
