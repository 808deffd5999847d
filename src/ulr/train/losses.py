"""The paper's losses of a dual encoder, as modules that sentence-transformers' trainer calls.

The single encoder is trained with sentence-transformers' own `BinaryCrossEntropyLoss`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn


class CategoryLoss(nn.Module, ABC):  # type: ignore[misc]
    """Loss of texts and their categories, of which the first is true and the others are false.

    The trainer passes the features of the texts, those of the different categories of a batch in
    one or several parts, and as labels the indices of each text's categories, (n_texts, n), with -1
    for padding.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, features: list[dict[str, Tensor]], labels: Tensor) -> Tensor:
        """Mean loss of a batch."""
        texts, *parts = (self.model(each)["sentence_embedding"].float() for each in features)
        return self.from_scores(self.compare(texts, torch.cat(parts)[labels]), labels >= 0)

    @abstractmethod
    def compare(self, texts: Tensor, categories: Tensor) -> Tensor:
        """Fit of texts, (n_texts, n_dims), and their (n_texts, n, n_dims) categories; high is good."""

    @abstractmethod
    def from_scores(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Mean loss of (n_texts, n) scores; the mask is False for padding."""


class DotProductLoss(CategoryLoss):
    """Binary cross-entropy of σ(x), where x is the dot product of text and category."""

    def compare(self, texts: Tensor, categories: Tensor) -> Tensor:
        """Dot products."""
        return (categories * texts.unsqueeze(1)).sum(dim=2)

    def from_scores(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Mean of -log σ(x) for true categories and -log(1 - σ(x)) for false ones."""
        targets = torch.zeros_like(scores)
        targets[:, 0] = 1
        return nn.functional.binary_cross_entropy_with_logits(scores[mask], targets[mask])


class HingeLoss(CategoryLoss):
    """Contrastive hinge of the squared distances x: max(x_p + γ - x_n, 0) for each false n."""

    def __init__(self, model: nn.Module, margin: float = 0.5) -> None:
        super().__init__(model)
        self.margin = margin

    def compare(self, texts: Tensor, categories: Tensor) -> Tensor:
        """Negative squared distances."""
        return -(categories - texts.unsqueeze(1)).square().sum(dim=2)

    def from_scores(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Mean hinge over the pairs of the true and a false category."""
        hinge = (scores[:, 1:] - scores[:, :1] + self.margin).clamp_min(0)
        # A batch without any false category has a loss of 0.
        return (hinge * mask[:, 1:]).sum() / mask[:, 1:].sum().clamp_min(1)

    def get_config_dict(self) -> dict[str, Any]:
        """Parameters for the model card."""
        return {"margin": self.margin}
