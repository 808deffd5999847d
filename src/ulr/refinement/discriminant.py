"""The default method: anchored soft clusters, linear discriminant analysis by EM, and naive Bayes.

1. Clusters start at the anchors and move away from them slowly (`ulr.refinement.clusters`).
2. Gaussians with one shared covariance continue from the clusters (`ulr.refinement.gaussians`).
3. Where there are texts, naive Bayes on their words is added (`ulr.refinement.words`).

The less reliable the anchors are (`ulr.refinement.reliability`), and the more the clusters collapse
onto a few labels, the more the result is the nearest anchor.

A prior on the sizes of the labels is as strong as the sizes found without it are skewed. The result
is one linear rule. The constants are fixed for all data; docs/refinement.md has their effects.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulr.refinement import validation
from ulr.refinement.blocks import EXCLUDED, Blocks
from ulr.refinement.centred import centre_of
from ulr.refinement.clusters import (
    Assignment,
    Cluster,
    Clusters,
    Nearest,
    NearestAnchor,
    StartClusters,
)
from ulr.refinement.constants import Constants
from ulr.refinement.distances import unit_rows
from ulr.refinement.gaussians import Gaussians, StartGaussians, discriminant, shrunk_covariance
from ulr.refinement.paper import PaperOptions, fit_nearest, fit_paper
from ulr.refinement.products import Float
from ulr.refinement.reliability import NearestInHalves
from ulr.refinement.result import Fitted, Pass, Problem
from ulr.refinement.rule import LinearRule, View, rule_of_centroids
from ulr.refinement.words import fit_words

_MOST_DIMS = 2048
_FEWEST_PER_LABEL = 3
_VECTOR_SAMPLE, _VECTOR_SAMPLE_PER_LABEL = 16_384, 512
_TOLERANCE = 1e-3  # share of the documents that change their label in the last pass
_LEAST_DIFFERING = 0.02
_COLLAPSED = 0.5  # share of the refinement that is left; with less, the result says so
_TINY = 1e-9


@dataclass(frozen=True)
class DiscriminantOptions:
    """Options of the default method.

    Attributes
    ----------
    prior
        Sizes of the labels: ``estimate``, ``balanced``, or (n_labels,) proportions.
    fit_sample
        Most documents to fit on, drawn at random; None for all. Words are fitted on these, clusters
        and Gaussians, which need fewer, on `vector_sample` of them.
    constants
        For experiments; the defaults are meant for all data.
    """

    prior: Any = "estimate"
    fit_sample: int | None = 200_000
    constants: Constants = field(default_factory=Constants)

    def vector_sample(self, n_labels: int) -> int | None:
        """Most documents that clusters and Gaussians are fitted on; None for all."""
        if self.fit_sample is None:
            return None
        most = max(_VECTOR_SAMPLE, _VECTOR_SAMPLE_PER_LABEL * n_labels, self.fit_sample // 12)
        return min(most, self.fit_sample)

    def validate(self, n_labels: int) -> None:
        """Refuse options that do not suit the labels."""
        validation.positive("fit_sample", self.fit_sample)
        validation.prior(self.prior, n_labels)


def fit_discriminant(blocks: Blocks, problem: Problem, options: DiscriminantOptions) -> Fitted:
    """Refine the anchors by the default method.

    Documents of more than 2,048 dimensions are refined by the paper's method. With fewer than three
    documents per label and no known ones there is no refinement.
    """
    if problem.max_iter == 1:
        return fit_nearest(blocks, problem, None)
    n_used, n_known = (
        np.count_nonzero(blocks.known != EXCLUDED),
        np.count_nonzero(blocks.known >= 0),
    )
    if n_used < _FEWEST_PER_LABEL * len(problem.anchors) and not n_known:
        reason = f"{n_used} is too small a number of documents for {len(problem.anchors)} labels"
        return replace(fit_nearest(blocks, problem, None), method="none", reason=reason)
    if blocks.n_dims > _MOST_DIMS:
        reason = f"the covariance of {blocks.n_dims:,} dimensions is too large"
        return replace(fit_paper(blocks, problem, PaperOptions()), method="ulr", reason=reason)
    with ExitStack() as stack:

        def sample(most: int | None) -> Blocks:
            rows = fit_rows(blocks, most, problem.random_state)
            return blocks if rows is None else stack.enter_context(blocks.subset(rows))

        fit = _Fit(sample(options.vector_sample(len(problem.anchors))), problem, options)
        return fit.run(None if blocks.words is None else sample(options.fit_sample))


def fit_rows(blocks: Blocks, most: int | None, random_state: int) -> NDArray[np.intp] | None:
    """Positions of a random sample of the documents; None for all of them.

    Documents of known label come first, up to half of the sample. A smaller sample is part of a
    larger one.
    """
    used = np.flatnonzero(blocks.known != EXCLUDED)
    if most is None or len(used) <= most:
        return None
    draw = np.random.default_rng(random_state)
    known = draw.permutation(used[blocks.known[used] >= 0])[: most // 2]
    others = draw.permutation(used[blocks.known[used] < 0])[: most - len(known)]
    return np.sort(np.concatenate([known, others]))


class _Fit:
    """One fit: the small state between passes."""

    def __init__(self, blocks: Blocks, problem: Problem, options: DiscriminantOptions) -> None:
        self._blocks, self._problem, self._constants = blocks, problem, options.constants
        self._anchors = unit_rows(problem.anchors)
        self._n_labels = len(self._anchors)
        self._prior = validation.prior(options.prior, problem.n_labels)
        self._share = 1.0  # how far the labels are refined; the nearest anchors count for the rest
        self._size_weight = 0.0
        self._trace: list[Pass] = []
        self._n = int(np.count_nonzero(blocks.known != EXCLUDED))

    def run(self, texts: Blocks | None) -> Fitted:
        """Fit all stages; words on the documents in `texts`, if there are any."""
        nearest = self._blocks.run(NearestAnchor(self._anchors))
        start = self._start(nearest)
        self._centre, self._centred_anchors = start.centre, start.anchors
        self._share = self._measure_reliability(nearest.n_known)
        clusters, self._kept = self._cluster(start)
        self._share *= self._kept
        gaussians, last = self._fit_gaussians()
        rule = self._combine(clusters, gaussians, last, nearest.lead / self._n)
        if texts is not None and self._share > 0.0:
            rule = self._add_words(rule, texts, gaussians.log_sizes)
        return self._fitted(rule, last)

    def _add_words(self, rule: LinearRule, texts: Blocks, log_sizes: Float) -> LinearRule:
        assert texts.words is not None
        refined = self._share
        words = fit_words(
            texts.words,
            texts.score(rule)[1],
            texts.known,
            refined * log_sizes,
            factor=refined * self._evidence,
            keep_sizes=self._size_weight,
        )
        return replace(rule, words=words)

    def _combine(
        self, clusters: Float, gaussians: Gaussians, last: Assignment, nearest_lead: float
    ) -> LinearRule:
        """Add the scores of clusters, Gaussians and, as far as names are unreliable, anchors.

        Each has the same mean lead, in log odds, before it is weighted.
        """
        c, refined = self._constants, self._share
        differing = max(last.differing / self._n, _LEAST_DIFFERING)
        lead = max(c.lead, c.agreement_lead / differing)
        scale = min(1.0, lead / max(last.lead / self._n, _TINY)) / (1 + c.cluster_share)
        weights = (
            scale * gaussians.weights + c.cluster_share / (1 + c.cluster_share) * lead * clusters
        )
        offsets = scale * gaussians.offsets + gaussians.log_sizes
        views = [View(refined * weights, normalize=True, centre=self._centre)]
        if refined < 1.0:
            names = (1.0 - refined) * lead / max(nearest_lead, _TINY) * self._anchors
            views.append(View(names, normalize=True))
        return LinearRule(tuple(views), refined * offsets)

    def _measure_reliability(self, n_known: Float) -> float:
        """Between 0 where the names say nothing about the documents and 1 where they say enough.

        Documents of known label say what the names may not.
        """
        c = self._constants
        step = NearestInHalves.of(unit_rows(self._anchors - self._centre), self._centre)
        kappa = c.reliable if step is None else self._blocks.run(step).kappa
        examples = float(n_known.sum()) / self._n_labels
        by_examples = examples / (examples + c.examples)
        return float(np.clip(max(kappa / c.reliable, by_examples), 0.0, 1.0))

    def _fitted(self, rule: LinearRule, last: Clusters) -> Fitted:
        own = slice(self._problem.n_labels)
        sizes = last.sizes[:, None]
        means = last.sums / np.maximum(sizes, _TINY)
        centroids = np.where(sizes > 0.5, means, self._centred_anchors)
        return Fitted(
            rule=rule.select(own),
            initial_rule=rule_of_centroids(self._problem.anchors[own], self._problem.distance),
            centroids=centroids[own] + self._centre,
            trace=tuple(self._trace),
            best_iteration=len(self._trace) - 1,
            converged=self._trace[-1].changed <= _TOLERANCE * self._n,
            n_fitted=self._n,
            share=self._share,
            collapsed=self._kept < _COLLAPSED,
        )

    # --- Clusters

    def _start(self, nearest: Nearest) -> StartClusters:
        c = self._constants
        centre = centre_of(nearest.total / self._n, c.centring, c.mean_rest)
        weight = nearest.n_known / c.examples
        anchors = unit_rows(self._anchors + weight[:, None] * unit_rows(nearest.known))
        scale = c.sharpness / max(nearest.lead / self._n, _TINY)
        return StartClusters(centre, unit_rows(anchors - centre), scale)

    def _cluster(self, start: StartClusters) -> tuple[Float, float]:
        """Mean of the clusters' weights over the passes, such that scores have a mean lead of 1.

        The second value is 1, or less where the clusters have collapsed. Leaves the votes of the
        passes in the state, and the weight of the size prior.
        """
        c = self._constants
        clusters = nearest = self._blocks.run(start)
        lead = clusters.lead / self._n
        self._record("nearest label", clusters)
        # One pass is left for the Gaussians.
        weights = self._anchor_weights()[: self._problem.max_iter - 2]
        total = np.zeros_like(self._anchors)
        for anchor_weight in weights:
            scale = c.sharpness / max(lead, _TINY)
            step = Cluster(
                start.centre,
                start.anchors,
                clusters.sizes,
                clusters.sums,
                anchor_weight,
                scale,
                self._log_sizes(clusters.sizes),
            )
            clusters = self._blocks.run(step)
            lead = clusters.lead / self._n / scale
            total += step.weights() / (c.sharpness * len(weights))
            self._record("clusters", clusters)
            if isinstance(self._prior, str) and self._prior == "estimate":
                self._size_weight = self._skew(clusters.counts)
        lost = _entropy(nearest.counts) - _entropy(clusters.counts)
        collapse = (lost - c.small_entropy_loss) / (c.large_entropy_loss - c.small_entropy_loss)
        return total, float(np.clip(1.0 - collapse, 0.0, 1.0))

    def _anchor_weights(self) -> list[float]:
        """Weight of the anchor in each pass; it falls less far with few documents."""
        c = self._constants
        evidence = self._share * self._evidence
        last = c.first_anchor_weight + evidence * (c.last_anchor_weight - c.first_anchor_weight)
        return np.linspace(c.first_anchor_weight, last, c.cluster_passes).tolist()

    @property
    def _evidence(self) -> float:
        """Close to 1 with many documents per label, to 0 with few."""
        per_label = self._n / self._n_labels
        return per_label / (per_label + self._constants.few_documents)

    def _record(self, stage: str, assignment: Assignment) -> None:
        objective = assignment.loss / max(self._n, 1)
        c = self._constants
        total = min(1 + c.cluster_passes + c.gaussian_passes, self._problem.max_iter)
        done = Pass(len(self._trace), stage, assignment.changed, objective, self._n, total)
        self._trace.append(done)
        self._problem.report(done)

    def _log_sizes(self, sizes: Float) -> Float:
        """Log prior of the labels."""
        if not isinstance(self._prior, str):
            extra = self._n_labels - len(self._prior)
            return np.log(np.append(self._prior, np.full(extra, self._prior.mean())))
        if self._size_weight == 0.0:
            return np.zeros(self._n_labels)
        c = self._constants
        added = c.size_share * sizes.sum() / self._n_labels + c.size_count
        shares = (sizes + added) / (sizes.sum() + added * self._n_labels)
        return self._size_weight * np.log(shares)

    def _skew(self, counts: Float) -> float:
        """Weight of the size prior, from label sizes that were found without it.

        With few documents per label, errors of a few names make equal sizes look skewed.
        """
        c = self._constants
        skew = (c.balanced - _entropy(counts)) / (c.balanced - c.skewed)
        return float(np.clip(self._evidence * skew, 0.0, 1.0))

    # --- Gaussians

    def _fit_gaussians(self) -> tuple[Gaussians, Assignment]:
        """Gaussians that continue from the votes of the cluster passes, and their clusters."""
        moments = self._blocks.run(StartGaussians(self._centre))
        tied = moments.sums / np.maximum(moments.sizes, _TINY)[:, None]
        expected = self._expected_means(moments, tied)
        clusters: Clusters = moments
        for _ in range(self._constants.gaussian_passes):
            step = self._maximise(clusters, moments.products, tied, expected)
            clusters = last = self._blocks.run(step)
            self._record("gaussians", last)
            if len(self._trace) == self._problem.max_iter:
                break
        return step, last

    def _expected_means(self, clusters: Clusters, means: Float) -> Float:
        """(n_labels, n_dims) where the mean of each label is expected from its anchor alone.

        The mean of all documents, moved in the direction of the anchor as far as the documents of
        all labels are on average.
        """
        total = clusters.sums.sum(axis=0) / max(float(clusters.sizes.sum()), _TINY)
        directions = self._centred_anchors - self._centred_anchors.mean(axis=0)
        along = np.einsum("ij,ij->i", means - total, directions) @ clusters.sizes
        squares = np.einsum("ij,ij->i", directions, directions) @ clusters.sizes
        return total + max(along / max(squares, _TINY), 0.0) * directions

    def _maximise(
        self, clusters: Clusters, moments: Float, tied: Float, expected: Float
    ) -> Gaussians:
        """The Gaussians of some clusters."""
        c, n_dims = self._constants, len(self._centre)
        strength = c.tie * self._n / self._n_labels
        sums = clusters.sums + strength * tied + c.few_documents * expected
        means = sums / (clusters.sizes + strength + c.few_documents)[:, None]
        shrink = (c.shrink * self._n + n_dims) / (self._n + n_dims)
        covariance = shrunk_covariance(moments, clusters, means, shrink)
        weights, offsets = discriminant(means, covariance, c.temper)
        return Gaussians(self._centre, weights, offsets, self._log_sizes(clusters.sizes))


def _entropy(counts: Float) -> float:
    """Normalised entropy of label sizes: 1 for equal ones, 0 if one label has all documents."""
    shares = counts[counts > 0] / counts.sum()
    entropy = -float((shares * np.log(shares)).sum())
    entropy += (len(shares) - 1) / (2 * counts.sum())  # Miller and Madow's correction
    return entropy / np.log(len(counts))
