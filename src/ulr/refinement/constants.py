"""Constants of the default method, the same for all data.

docs/refinement.md has the effect of halving and doubling each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ulr.refinement.centred import LEAST_SHARE, MOST_REST


@dataclass(frozen=True)
class Constants:
    """Constants of the method, the same for all data.

    Attributes
    ----------
    centring, mean_rest
        Least share of the mean document that is subtracted, and most length of the rest relative to
        the spread of the documents; see `ulr.refinement.centred.centre_of`.
    examples
        Documents of known label that count as much as the anchor.
    cluster_passes, gaussian_passes
        Number of passes of each stage.
    first_anchor_weight, last_anchor_weight
        Weight of the anchor in the first and in the last pass over clusters.
    few_documents
        Documents per label at which the anchor weight falls only half as far, and words and the skew
        of the label sizes count half. Also the weight, in documents, of the mean of a Gaussian that
        is expected from the anchor.
    sharpness
        Mean lead, in log odds, of the best label over the second in the clusters.
    size_share, size_count
        Added to the size of every label before its logarithm: a share of the mean size, and a
        number of documents.
    balanced, skewed
        Normalised entropy of the label sizes above which there is no size prior, and below which it
        is full with many documents per label.
    shrink
        Shrinkage of the covariance with many documents per dimension.
    tie
        Weight that ties the mean of a Gaussian to its cluster, in mean sizes.
    temper
        Factor of the log likelihoods.
    lead, agreement_lead
        Largest mean lead, in log odds, of a part of the rule when the parts are added. Where the
        Gaussians agree with the nearest anchors on nearly all documents it is larger:
        ``agreement_lead`` over the share of the others. Else the size prior would outweigh clear
        evidence for small labels.
    cluster_share
        Weight of the clusters beside the Gaussians.
    reliable
        Split-half reliability of the anchors (`ulr.refinement.reliability`) from which the labels
        are refined fully; below, the nearest anchors count in proportion.
    small_entropy_loss, large_entropy_loss
        Fall of the normalised entropy of the label sizes, from the nearest anchors to the clusters,
        up to which the labels are refined fully, and from which the result is the nearest anchor.
        Clusters that collapse onto a few labels follow what all documents have in common.
    """

    centring: float = LEAST_SHARE
    mean_rest: float = MOST_REST
    examples: float = 5.0
    cluster_passes: int = 8
    gaussian_passes: int = 4
    first_anchor_weight: float = 0.7
    last_anchor_weight: float = 0.3
    few_documents: float = 20.0
    sharpness: float = 3.0
    size_share: float = 0.05
    size_count: float = 5.0
    balanced: float = 0.98
    skewed: float = 0.95
    shrink: float = 0.3
    tie: float = 1.0
    temper: float = 0.5
    lead: float = 2.0
    agreement_lead: float = 0.35
    cluster_share: float = 0.25
    reliable: float = 0.15
    small_entropy_loss: float = 0.05
    large_entropy_loss: float = 0.15
