"""What training minimises. Of the categories of each text the first is true, the others false."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

MARGIN = 0.5


def dot_product(texts: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
    """Dot product of each text, (n_texts, n_dims), with its categories, (n_texts, n, n_dims)."""
    return (categories * texts.unsqueeze(1)).sum(dim=2)


def squared_l2(texts: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
    """Squared distance of each text, (n_texts, n_dims), to its (n_texts, n, n_dims) categories."""
    return (categories - texts.unsqueeze(1)).square().sum(dim=2)


def binary_cross_entropy(scores: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Mean of -log σ(x) for the true category and -log(1 - σ(x)) for the false ones.

    Parameters
    ----------
    scores
        (n_texts, n_categories) x, higher where a category fits better.
    real
        (n_texts, n_categories) which of them count; the rest is padding.
    """
    from torch.nn.functional import softplus

    signed = scores.clone()
    signed[:, 0] = -signed[:, 0]
    return softplus(signed)[real].mean()


def contrastive_hinge(
    distances: torch.Tensor, real: torch.Tensor, margin: float = MARGIN
) -> torch.Tensor:
    """Mean of max(x_p + γ - x_n, 0) over each text's true category p and every false one n.

    Parameters
    ----------
    distances
        (n_texts, n_categories) x, lower where a category fits better.
    real
        (n_texts, n_categories) which of them count; the rest is padding.
    margin
        γ.
    """
    over = (distances[:, :1] + margin - distances[:, 1:]).clamp_min(0)
    # A batch may, if hardly ever, have no false category at all: nothing to learn from.
    return (over * real[:, 1:]).sum() / real[:, 1:].sum().clamp_min(1)


@dataclass(frozen=True)
class Objective:
    """A dual encoder's way to compare and to learn.

    Attributes
    ----------
    compare
        Texts and categories to (n_texts, n_categories) figures.
    loss
        What is minimised, of those figures and of which of them are real.
    higher_fits
        Whether a higher figure is a better fit.
    distance
        The distance that classification with it goes by.
    """

    compare: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    loss: Callable[..., torch.Tensor]
    higher_fits: bool
    distance: str


OBJECTIVES = {
    "dot": Objective(dot_product, binary_cross_entropy, True, "cosine"),
    "l2": Objective(squared_l2, contrastive_hinge, False, "l2"),
}
