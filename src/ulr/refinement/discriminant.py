"""The default method: anchored soft clusters, linear discriminant analysis by EM, and naive Bayes.

1. What repeats in the documents whatever their label is damped (`ulr.refinement.components`).
2. Clusters start at the anchors and move away from them slowly (`ulr.refinement.clusters`).
3. Gaussians with one shared covariance continue from the clusters.
4. Where there are texts, naive Bayes on their words is added (`ulr.refinement.words`).

The less reliable the anchors are (their split-half reliability), and the more the clusters collapse
onto a few labels, the more the result is the nearest anchor.

A prior on the sizes of the labels is as strong as the sizes found without it are skewed. The result
is one linear rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ulr.refinement import constants
from ulr.refinement.blocks import EXCLUDED, Blocks, Summary
from ulr.refinement.clusters import (
    Cluster,
    Gaussians,
    NearestAnchor,
    NearestInHalves,
    StartClusters,
    StartGaussians,
    centre_of,
    mean_kappa,
)
from ulr.refinement.components import Moments, repeated_parts
from ulr.refinement.constants import Constants
from ulr.refinement.distances import Float
from ulr.refinement.paper import PaperOptions, fit_nearest, fit_paper
from ulr.refinement.result import (
    Fitted,
    LinearRule,
    Pass,
    Problem,
    View,
    rule_of_centroids,
)
from ulr.refinement.validation import check_positive, check_prior
from ulr.refinement.words import fit_words
from ulr.vectors import squared_lengths, unit_rows

_TINY = 1e-9


@dataclass(frozen=True)
class DiscriminantOptions:
    """Options of the default method."""

    prior: Any = "estimate"  # sizes of the labels; or ``balanced``, or (n_labels,) proportions
    # Most documents to fit on, drawn at random; None for all. Words are fitted on all of these;
    # clusters and Gaussians, which need fewer, on 16,384 of them, or on 512 per label where that is
    # more: `Refinement.n_fitted`.
    fit_sample: int | None = constants.FIT_SAMPLE
    constants: Constants = (
        constants.DEFAULTS
    )  # for experiments; the defaults are meant for all data

    def __post_init__(self) -> None:
        check_positive("fit_sample", self.fit_sample)


def fit_discriminant(blocks: Blocks, problem: Problem, options: DiscriminantOptions) -> Fitted:
    """Refine the anchors by the default method, where there are documents enough for it."""
    n_labels = len(problem.anchors)
    prior = check_prior(options.prior, problem.n_labels)
    if problem.max_iter == 1:
        return fit_nearest(blocks, problem)
    n_used = int(np.count_nonzero(blocks.known != EXCLUDED))
    if n_used < constants.FEWEST_PER_LABEL * n_labels and not (blocks.known >= 0).any():
        reason = f"{n_used} is too small a number of documents for {n_labels} labels"
        return replace(fit_nearest(blocks, problem), method="none", reason=reason)
    if blocks.n_dims > constants.MOST_DIMS:
        reason = f"the covariance of {blocks.n_dims:,} dimensions is too large"
        return replace(fit_paper(blocks, problem, PaperOptions()), method="ulr", reason=reason)
    n_vectors = n_texts = options.fit_sample
    if n_texts is not None:
        per_label = constants.VECTOR_SAMPLE_PER_LABEL * n_labels
        per_label = min(per_label, constants.MOST_SCORES // n_labels)
        n_vectors = min(n_texts, max(constants.VECTOR_SAMPLE, per_label))
    sample = _sample(blocks, n_vectors, problem)
    fit = _Fit(sample, problem, prior, options.constants)
    clusters = fit.cluster(fit.start())
    gaussians, last = fit.fit_gaussians()
    rule = fit.combine(clusters, gaussians, last)
    sample.clear_states()
    if blocks.words is not None and fit.share > 0.0:
        texts = _sample(blocks, n_texts, problem)
        words = fit_words(
            texts.words,
            texts.score_all([rule])[1],
            texts.known,
            fit.share * gaussians.log_sizes,
            factor=fit.share * fit.evidence,
            keep_sizes=fit.size_weight,
        )
        rule = replace(rule, words=words)
    return fit.result(rule, last)


def _sample(blocks: Blocks, most: int | None, problem: Problem) -> Blocks:
    """A random sample of the documents; up to half of it are documents of known label."""
    used = np.flatnonzero(blocks.known != EXCLUDED)
    if most is None or len(used) <= most:
        return blocks
    draw = np.random.default_rng(problem.random_state)
    known = draw.permutation(used[blocks.known[used] >= 0])[: most // 2]
    others = draw.permutation(used[blocks.known[used] < 0])[: most - len(known)]
    rows = np.sort(np.concatenate([known, others]))
    words = None if blocks.words is None else blocks.words[rows]
    return Blocks(
        [blocks.gather(rows)],
        blocks.known[rows],
        blocks.lengths[rows],
        words,
        n_jobs=blocks.n_jobs,
        n_labels=len(problem.anchors),
    )


class _Fit:
    """One fit of the vectors: the small state between passes."""

    def __init__(
        self, blocks: Blocks, problem: Problem, prior: str | Float, constants: Constants
    ) -> None:
        self._blocks, self._problem, self._prior = blocks, problem, prior
        self._constants = c = constants
        self._anchors = unit_rows(problem.anchors)
        self._n_labels = len(self._anchors)
        self._n = int(np.count_nonzero(blocks.known != EXCLUDED))
        self._trace: list[Pass] = []
        self.size_weight = 0.0  # of the size prior
        per_label = self._n / self._n_labels
        # Close to 1 with many documents per label, to 0 with few.
        self.evidence = per_label / (per_label + c.few_documents)
        passes = min(1 + c.cluster_passes + c.gaussian_passes, problem.max_iter)
        problem.progress.stage("Refining", passes, "passes")

    def start(self) -> Summary:
        """The clusters of the nearest anchors; sets the centre and how reliable the anchors are."""
        c, n = self._constants, self._n
        nearest = self._blocks.run(NearestAnchor(self._anchors))
        self._nearest_lead = nearest.lead / n
        self._centre = centre_of(nearest.total / n, c)
        names, damped = self._damp_repeated()
        self._centred_anchors = names
        scale = c.sharpness / max(nearest.lead / n, _TINY)
        clusters = self._blocks.run(StartClusters(names, scale, damped))
        halves = NearestInHalves.of(names)
        kappa = c.reliable if halves is None else mean_kappa(self._blocks.run(halves))
        by_names = float(np.clip(kappa / c.reliable, 0.0, 1.0))
        examples = float(nearest.sizes.mean())
        if examples > 0.0:
            self._add_examples(nearest, clusters, by_names)
            again = StartClusters(self._centred_anchors, scale, damped[:, :0])  # damped already
            clusters = self._blocks.run(again)
        self._record("nearest label", clusters)
        # From 0 where neither names nor known documents say anything to 1 where they say enough.
        self._reliability = max(by_names, examples / (examples + c.examples))
        return clusters

    def _add_examples(self, nearest: Summary, clusters: Summary, by_names: float) -> None:
        """Move the anchors towards the documents of known label.

        Documents are nearer to documents than to names: a label with more of them in its anchor
        would take those of others. So each has the same share, and with its examples, which may not
        be typical, count those that are nearest to its name.
        """
        c = self._constants
        known = (nearest.sums - nearest.sizes[:, None] * self._centre) @ self._damping
        count = by_names * np.minimum(c.few_documents / np.maximum(clusters.sizes, 1.0), 1.0)
        documents = unit_rows(known + count[:, None] * clusters.sums)
        share = float(nearest.sizes.mean()) / c.examples
        self._centred_anchors = unit_rows(self._centred_anchors + share * documents)

    def _damp_repeated(self) -> tuple[Float, Float]:
        """Centred anchors, (n_labels, n_dims), without what repeats, and its directions.

        Sets the matrix that damps these, and the second moments of damped documents.
        """
        moments = self._blocks.run(Moments(self._centre))
        names = unit_rows(self._anchors - self._centre)
        damped = repeated_parts(self._blocks, self._centre, moments, names)
        self._damping = np.eye(len(damped)) - damped @ damped.T
        self._products = self._damping @ moments.products @ self._damping
        return unit_rows(names @ self._damping), damped

    def cluster(self, first: Summary) -> Float:
        """Mean of the clusters' weights over the passes, such that scores have a mean lead of 1.

        Sets how far the labels are refined and the weight of the size prior.
        """
        c, n, clusters = self._constants, self._n, first
        # The weight of the anchor falls less far with few documents, or unreliable names.
        last = c.first_anchor_weight + self._reliability * self.evidence * (
            c.last_anchor_weight - c.first_anchor_weight
        )
        weights = np.linspace(c.first_anchor_weight, last, c.cluster_passes).tolist()
        weights = weights[: self._problem.max_iter - 2]  # one pass is left for the Gaussians
        lead, total = first.lead / n, np.zeros_like(self._anchors)
        for anchor_weight in weights:
            scale = c.sharpness / max(lead, _TINY)
            lengths = np.sqrt(squared_lengths(clusters.sums)).sum()
            step = Cluster(
                self._centred_anchors,
                clusters.sizes,
                clusters.sums,
                max(float(lengths / max(clusters.sizes.sum(), 1.0)), _TINY),
                anchor_weight,
                scale,
                self._log_sizes(clusters.sizes),
            )
            clusters = self._blocks.run(step)
            lead = clusters.lead / n / scale
            total += step.weights() / (c.sharpness * len(weights))
            self._record("clusters", clusters)
            if isinstance(self._prior, str) and self._prior == "estimate":
                # With few documents per label, errors of a few names make equal sizes look skewed.
                skew = (c.balanced - _entropy(clusters.counts)) / (c.balanced - c.skewed)
                self.size_weight = float(np.clip(self.evidence * skew, 0.0, 1.0))
        lost = _entropy(first.counts) - _entropy(clusters.counts)
        collapse = (lost - c.small_entropy_loss) / (c.large_entropy_loss - c.small_entropy_loss)
        self._kept = float(np.clip(1.0 - collapse, 0.0, 1.0))
        self.share = self._reliability * self._kept
        return total

    def fit_gaussians(self) -> tuple[Gaussians, Summary]:
        """Gaussians that continue from the votes of the cluster passes, and their clusters."""
        c, n, n_dims = self._constants, self._n, len(self._centre)
        first = clusters = self._blocks.run(StartGaussians())
        tied = first.sums / np.maximum(first.sizes, _TINY)[:, None]
        # The mean of all documents, moved towards each anchor as far as documents are on average.
        mean = first.sums.sum(axis=0) / max(float(first.sizes.sum()), _TINY)
        directions = self._centred_anchors - self._centred_anchors.mean(axis=0)
        along = np.einsum("ij,ij->i", tied - mean, directions) @ first.sizes
        squares = np.einsum("ij,ij->i", directions, directions) @ first.sizes
        expected = mean + max(along / max(squares, _TINY), 0.0) * directions
        strength = c.tie * n / self._n_labels
        shrink = (c.shrink * n + n_dims) / (n + n_dims)
        for _ in range(c.gaussian_passes):
            sums = clusters.sums + strength * tied + c.few_documents * expected
            means = sums / (clusters.sizes + strength + c.few_documents)[:, None]
            cross = (clusters.sums - 0.5 * clusters.sizes[:, None] * means).T @ means
            covariance = (self._products - cross - cross.T) / max(clusters.sizes.sum(), 1.0)
            variance = max(float(np.trace(covariance)), constants.LEAST_VARIANCE) / n_dims
            covariance *= 1 - shrink
            covariance[np.diag_indices(n_dims)] += shrink * variance
            weights = c.temper * np.linalg.solve(covariance, means.T).T
            offsets = -0.5 * np.einsum("ij,ij->i", means, weights)
            step = Gaussians(weights, offsets, self._log_sizes(clusters.sizes))
            clusters = self._blocks.run(step)
            self._record("gaussians", clusters)
            if len(self._trace) == self._problem.max_iter:
                break
        return step, clusters

    def combine(self, clusters: Float, gaussians: Gaussians, last: Summary) -> LinearRule:
        """Add scores of equal mean lead: clusters, Gaussians and, where unrefined, the anchors."""
        c, refined = self._constants, self.share
        differing = max(last.differing / self._n, c.least_differing)
        lead = max(c.lead, c.agreement_lead / differing)
        scale = min(1.0, lead / max(last.lead / self._n, _TINY)) / (1 + c.cluster_share)
        weights = (
            scale * gaussians.weights + c.cluster_share / (1 + c.cluster_share) * lead * clusters
        )
        offsets = scale * gaussians.offsets + gaussians.log_sizes
        views = [View(refined * weights @ self._damping, normalize=True, centre=self._centre)]
        if refined < 1.0:
            names = (1.0 - refined) * lead / max(self._nearest_lead, _TINY) * self._anchors
            views.append(View(names, normalize=True))
        return LinearRule(tuple(views), refined * offsets)

    def result(self, rule: LinearRule, last: Summary) -> Fitted:
        """The fit as a whole; `last` are the clusters of the last pass."""
        own = slice(self._problem.n_labels)
        sizes = last.sizes[:, None]
        means = last.sums / np.maximum(sizes, _TINY)
        centroids = np.where(sizes > 0.5, means, self._centred_anchors)
        return Fitted(
            rule=rule if len(means) == self._problem.n_labels else rule.select(own),
            initial_rule=rule_of_centroids(self._problem.anchors[own], self._problem.distance),
            centroids=centroids[own] + self._centre,
            trace=tuple(self._trace),
            best_iteration=len(self._trace) - 1,
            converged=self._trace[-1].changed <= constants.TOLERANCE * self._n,
            method=self._problem.method,
            n_fitted=self._n,
            share=self.share,
            collapsed=self._kept < constants.COLLAPSED,
        )

    def _record(self, stage: str, clusters: Summary) -> None:
        objective = clusters.objective / max(self._n, 1)
        self._trace.append(Pass(len(self._trace), stage, clusters.changed, objective, self._n))
        self._problem.progress.advance(1)

    def _log_sizes(self, sizes: Float) -> Float:
        """Log prior of the labels."""
        if not isinstance(self._prior, str):
            extra = self._n_labels - len(self._prior)
            return np.log(np.append(self._prior, np.full(extra, self._prior.mean())))
        if self.size_weight == 0.0:
            return np.zeros(self._n_labels)
        c = self._constants
        added = c.size_share * sizes.sum() / self._n_labels + c.size_count
        shares = (sizes + added) / (sizes.sum() + added * self._n_labels)
        return self.size_weight * np.log(shares)


def _entropy(counts: Float) -> float:
    """Normalised entropy of label sizes: 1 for equal ones, 0 if one label has all documents."""
    shares = counts[counts > 0] / counts.sum()
    entropy = -float((shares * np.log(shares)).sum())
    entropy += (len(shares) - 1) / (2 * counts.sum())  # Miller and Madow's correction
    return entropy / float(np.log(len(counts)))
