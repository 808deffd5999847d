"""Constants of the default method, its confidence and its diagnosis, the same for all data.

Each stands beside the measurement that set it. ``a: -0.5`` is the change of the mean accuracy, in
points, if the constant is a instead: over the 54 scenarios of ``benchmarks/scenarios.py --sensitivity``
(docs/refinement.md), or, for words, over the paper's four datasets.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constants:
    """Constants of the clusters and Gaussians; another value can be given for an experiment."""

    # Centring subtracts at least this share of the mean document. 0.15: 0, 0.6: -0.6; with 1,
    # Reuters-8, where one label holds half of the documents, falls from 91 to 28 %.
    centring: float = 0.3
    # So much is subtracted that the rest of the mean is at most this long, relative to the spread
    # of the documents. Averaged GloVe vectors on AG News: 84 instead of 46 %.
    mean_rest: float = 0.45
    # Documents of known label that count as much as the name. 2.5: +0.1, 10: -0.1 (`benchmarks/ask.py`,
    # which has known documents).
    examples: float = 5.0
    # Passes over the clusters. 4: -0.6, 16: -0.2.
    cluster_passes: int = 8
    # Passes over the Gaussians. 2: 0 (-0.3 on the datasets as they are), 8: 0.
    gaussian_passes: int = 4
    # Weight of the anchor in the first pass over the clusters. 0.4: -0.5, 0.85: -0.2.
    first_anchor_weight: float = 0.7
    # The same in the last pass. 0.15: -0.2, 0.6: -0.3.
    last_anchor_weight: float = 0.3
    # Documents per label at which the anchor weight falls half as far, words and skew count half, and
    # the mean of a Gaussian is half its anchor's; those that are nearest to a name count as so many
    # examples. 10: +0.1 (worst case -0.4), 40: -0.3.
    few_documents: float = 20.0
    # Mean lead, in log odds, of the best label in the clusters. 1.5: +0.2 (-0.1 on datasets), 6: -0.8.
    sharpness: float = 3.0
    # Added to the size of every label in the size prior, as a share of the mean size. 0.1: -0.2.
    size_share: float = 0.05
    # Added as well, in documents. 10: -0.2; 20: +0.2 with many labels, -3 where two hold most documents.
    size_count: float = 5.0
    # Normalised entropy of the label sizes from which there is no size prior. 0.96: -0.1, 0.99: -0.1.
    balanced: float = 0.98
    # Entropy below which the size prior is full. 0.9: -0.7, 0.975: +0.1.
    skewed: float = 0.95
    # Shrinkage of the covariance with many documents per dimension. 0.15: -0.1, 0.6: 0.
    shrink: float = 0.3
    # Weight that ties the mean of a Gaussian to its cluster, in mean sizes. 0.5: -0.1, 2: 0.
    tie: float = 1.0
    # Factor of the log likelihoods, since dimensions are not independent. 0.25: +0.4, 1: -0.3.
    temper: float = 0.5
    # Largest mean lead, in log odds, of a part of the rule. 1: +0.2 (-0.5 on datasets), 4: -0.5.
    lead: float = 2.0
    # Over the share of documents that differ from the nearest anchors: a larger limit of the lead, or
    # the size prior outweighs clear evidence for small labels. 0.175: 0, 0.7: -0.2.
    agreement_lead: float = 0.35
    # Least such share: it bounds the lead where nothing differs. 0.001: 0 on the paper's datasets.
    least_differing: float = 0.02
    # Weight of the clusters beside the Gaussians. 0.125: 0, 0.5: 0.
    cluster_share: float = 0.25
    # Split-half reliability of the names from which labels are refined fully. 0.075: 0, 0.3: -0.1.
    reliable: float = 0.15
    # Fall of the entropy of the label sizes up to which labels are refined fully. 0.1: -0.1.
    small_entropy_loss: float = 0.05
    # And from which the result is the nearest anchor. 0.3: -0.1; without it, consumer complaints -15.6.
    large_entropy_loss: float = 0.15


DEFAULTS = Constants()

# --- Fit
# Documents that words are fitted on: from 100,000 on, the loss is below 0.1 point.
FIT_SAMPLE = 200_000
# Documents that clusters and Gaussians are fitted on, or so many per label. 60,000 Yahoo titles: 56.5
# to 56.8 % with 16,384 (three draws), 56.7 % with all.
VECTOR_SAMPLE, VECTOR_SAMPLE_PER_LABEL = 16_384, 512
# Documents times labels that the larger sample has at most, 128 MB an array: from 256 labels on it has
# fewer documents of each. 30,000 Reddit posts, 300 labels: macro-recall 20.4 % with 10,000 of them,
# 20.5 % with all (but 19.6 % if words are fitted on no more, too).
MOST_SCORES = 1 << 25
# Documents per label that are refined. New documents gain 0.7 points (1 per label), 1.5 (2), 1.8 (3)
# and 2.8 (4) on average, but with one document per label up to 5.6 are lost.
FEWEST_PER_LABEL = 3
# Dimensions of a covariance, which has their square of numbers and takes their cube of operations.
MOST_DIMS = 2048
# Share of the documents that may change their label in the last pass of a converged fit.
TOLERANCE = 1e-3
# Share of the refinement that is left after a collapse; with less, the result says so.
COLLAPSED = 0.5
# Total variance of unit documents that single precision can still tell from none.
LEAST_VARIANCE = 1e-2

# --- Components that say nothing about the labels (docs/refinement.md)
FEWEST_COMPONENTS = 4  # leading ones that are compared; one per label where that is more
# Variance in medians of these. Marks in 15 % of the words, or a footer: 2.2 to 7.8 where they do harm.
# With 1, a component of 300 documents of Reuters-8 is damped that tells labels apart (-30).
LARGE_PART = 2.0
# Variance of the names along a component, relative to any direction. Marks and footers: 0.3 to 2.2; the
# first component of clean datasets: 4.9 to 28, but Reuters-8 1.3 and sentiment 0.5.
UNNAMED = 2.5
# Distance of the means of two normal distributions in standard deviations (Ashman's D). Reuters-8, where
# the component is that of a label: 5.7 to 5.9, joined with other sets 3.2 to 4.7; marks and footers: 1.5
# to 2.8.
TWO_GROUPS = 3.0
MOST_COMPARED = 2_000  # documents that tell whether there are two groups

# --- Reliability of the names
# Pairs of halves, and the labels of all of them. With 1 or 16 pairs, kappa changes by up to 0.02.
MOST_SPLITS, SPLIT_LABELS = 4, 64
# Of all dimensions, and of a half at most: in more, halves agree more, whatever the names say.
FEWEST_DIMS, HALF_DIMS = 8, 128

# --- Words
FOLDS = 4  # of cross-fitting. 2: 0, 8: 0
SMOOTHING = 0.3  # of naive Bayes, in mean sizes. 0.15: -0.1, 0.6: +0.1
FEWEST_WITH_WORD = 2  # documents. 1: 0, 5: 0, and a word of one document says nothing about others
MOST_WORDS = 20_000  # that are kept in a model. 5,000: 0, all: 0
# The same with many labels: words times labels, in the choice of words and in a model. From 168 and 420
# labels on, only the most frequent words take part, and fewer are kept; each array is 64 MB at most.
MOST_COUNTED_WEIGHTS, MOST_KEPT_WEIGHTS = 1 << 24, 1 << 23
MULTIPLIER_SAMPLE = 2_000  # documents that choose the weight of words. 500: 0, all: 0
LEAST_MULTIPLIER, MOST_MULTIPLIER = 1e-2, 32.0  # with less weight, a model is stored without words
LARGEST_WEIGHT = 1e4  # half precision has no number above 65,504
SIZE_STEPS = 5  # of the fixed-point iteration that restores the sizes of the labels. 1: 0, 20: 0

# --- Confidence: chosen by regression over all datasets, under the condition that the error on each of
# the paper's four is at most 12 points (docs/refinement.md). The log odds of the expected accuracy are
# a weighted sum of log odds of agreements, of the logarithm of the lead, and of a constant.
DIMENSIONS_WEIGHT, DOCUMENTS_WEIGHT, LEAD_WEIGHT, CONSTANT = 0.4, 0.8, 0.6, -0.7
NEIGHBOURS_ABOVE_WORDS = 0.5  # log odds by which neighbours agree more often than words
# Documents per label at which an agreement has half of the weight, and its substitute the other half.
NEIGHBOURS_PER_LABEL, WORDS_PER_LABEL = 1.0, 40.0
FEW_DOCUMENTS = 200  # with few documents, agreements are lower at the same accuracy
WORDS_SCALE = 8.0  # of naive Bayes scores beside the log prior; rows of tf-idf have length one
CALIBRATION_SAMPLE = (
    3_000  # documents. The mean confidence of four draws differs by 0.5 to 2.3 points
)
QUERIES, NEIGHBOURS = 1_000, 10  # documents that are compared with so many nearest ones
FEWEST_CALIBRATED = 20  # documents; agreements of fewer are chance
HIGHEST_EXPECTED = 0.99  # accuracy; log odds of more are decided by single documents
MOST_WORD_WEIGHTS = (
    1 << 22
)  # words times labels, which are 16 MB; with more, words are not compared

# --- Diagnosis: docs/refinement.md has how often its warnings are right.
DIAGNOSED, DIAGNOSED_PER_LABEL = 2_048, 64  # documents. The fit of four draws differs by up to 0.02
LEAST_FIT = 0.7  # of the labels to their names, relative to the nearest names
LEAST_RELIABILITY = 0.1  # the nearest labels hardly agree more often than by chance
LEAST_KEPT, SIZE_FACTOR = 0.5, 3.0  # of the documents of a label that was not overturned
LEAST_OVERTURNED = 0.05  # share of the documents; with less, the whole is still trusted
# Accuracy. Of 81 fits on 30 datasets, all 29 that were no more than half right are flagged, and 20 of
# the 52 others; with 0.55 they were 25 and 12.
LEAST_EXPECTED = 0.65
FEWEST_DOCUMENTS_PER_LABEL, FEWEST_FITTED = 10, 20  # before labels are called small or rare
FEWEST_COMPARED = 20  # documents; the reliability of fewer is chance
