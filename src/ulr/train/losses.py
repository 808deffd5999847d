"""Training losses. The first category of each text is true, the others are false."""

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


def binary_cross_entropy(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean of -log σ(x) for true categories and -log(1 - σ(x)) for false ones.

    Parameters
    ----------
    scores
        (n_texts, n_categories) x, higher for a better match.
    mask
        (n_texts, n_categories) False for padding.
    """
    from torch.nn.functional import softplus

    signed = scores.clone()
    signed[:, 0] = -signed[:, 0]
    return softplus(signed)[mask].mean()


def contrastive_hinge(
    distances: torch.Tensor, mask: torch.Tensor, margin: float = MARGIN
) -> torch.Tensor:
    """Mean of max(x_p + γ - x_n, 0) over the true category p and each false category n.

    Parameters
    ----------
    distances
        (n_texts, n_categories) x, lower for a better match.
    mask
        (n_texts, n_categories) False for padding.
    margin
        γ.
    """
    hinge = (distances[:, :1] + margin - distances[:, 1:]).clamp_min(0)
    # A batch without any false category has a loss of 0.
    return (hinge * mask[:, 1:]).sum() / mask[:, 1:].sum().clamp_min(1)


@dataclass(frozen=True)
class Objective:
    """How a dual encoder compares and learns.

    Attributes
    ----------
    compare
        Compares texts with their categories, (n_texts, n_categories).
    loss
        The loss of these values and their mask.
    higher_is_better
        Whether a higher value is a better match.
    distance
        The distance to classify with.
    """

    compare: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    loss: Callable[..., torch.Tensor]
    higher_is_better: bool
    distance: str


OBJECTIVES = {
    "dot": Objective(dot_product, binary_cross_entropy, True, "cosine"),
    "l2": Objective(squared_l2, contrastive_hinge, False, "l2"),
}
DUAL_OBJECTIVES, SINGLE = tuple(OBJECTIVES), "single"
