"""Plain float64 versions of the methods: every document scored in every pass, nothing blocked."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, rel_entr, softmax

from ulr.refinement.constants import Constants
from ulr.refinement.words import content_hashes

EQUAL = 1e-12


def unit(rows):
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def distances(documents, centroids, distance):
    """(n_documents, n_labels); smaller is closer."""
    if distance == "cosine":
        return 1.0 - unit(documents) @ unit(centroids).T
    if distance == "l2":
        return cdist(documents, centroids, "sqeuclidean")
    if distance == "dot":
        return -documents @ centroids.T
    middle = 0.5 * (documents[:, None] + centroids[None])
    both = rel_entr(documents[:, None], middle) + rel_entr(centroids[None], middle)
    return np.sqrt(np.maximum(0.5 * both.sum(axis=2), 0.0))


def nearest(documents, centroids, distance):
    """The first of equally close labels, and the distance to it."""
    table = distances(documents, centroids, distance)
    lengths = np.linalg.norm(documents, axis=1)[:, None]
    others = np.linalg.norm(centroids, axis=1)
    equal = {"l2": 2 * lengths * others + others**2, "dot": lengths * others}.get(distance, 1.0)
    if distance == "l2":  # without what all labels have in common, which is rounded
        table = others**2 - 2 * documents @ centroids.T
    labels = (table <= table.min(axis=1, keepdims=True) + EQUAL * equal).argmax(axis=1)
    return labels, distances(documents, centroids, distance)[np.arange(len(labels)), labels]


@dataclass
class Plain:
    """Outcome of the plain loop."""

    predictions: np.ndarray
    unrefined: np.ndarray
    centroids: np.ndarray
    objective: list
    changed: list
    best_iteration: int


def paper(documents, anchors, distance="cosine", known=None, max_iter=100, keep=None):
    """Algorithms 1, 2 and 3 as the paper writes them."""
    single = distance == "jensen-shannon"
    keep = keep or ("last" if single else "lowest")
    documents = np.asarray(documents, dtype=np.float64)
    anchors = np.asarray(anchors, dtype=np.float64)
    if single:
        documents = documents / documents.sum(axis=1, keepdims=True)
    known = np.full(len(documents), -1) if known is None else np.asarray(known)
    usable = documents.any(axis=1) | (distance != "cosine")
    free = (known < 0) & usable
    points = unit(documents) if distance == "cosine" else documents
    start = unit(anchors) if distance == "cosine" else anchors
    centroids = best = start
    objective, changed, best_iteration, before = [], [], 0, None
    while True:
        labels, own_distances = nearest(points[free], centroids, distance)
        objective.append(own_distances.mean())
        changed.append(0 if before is None else int((labels != before).sum()))
        if keep == "last" or objective[-1] < objective[best_iteration]:
            best_iteration, best = len(objective) - 1, centroids
        if (before is not None and changed[-1] == 0) or len(objective) == max_iter:
            break
        before, new = labels, np.empty_like(centroids)
        for label in range(len(anchors)):
            own, given = points[free][labels == label], points[(known == label) & usable]
            mean = own.mean(axis=0) if len(own) else points[free].mean(axis=0)
            if single:
                new[label] = mean if len(own) else centroids[label]
                continue
            if len(given):
                mean = 0.5 * mean + 0.5 * given.mean(axis=0)
            new[label] = 0.5 * mean + 0.5 * start[label]
        centroids = new
    return Plain(
        np.where(known >= 0, known, nearest(points, best, distance)[0]),
        nearest(points, start, distance)[0],
        best,
        objective,
        changed,
        best_iteration,
    )


def mean_lead(scores):
    two = np.sort(scores, axis=1)[:, -2:]
    lead = float((two[:, 1] - two[:, 0]).mean())
    return lead if lead > 0 else 1.0


def centred(documents, anchors, c=None):
    """Unit vectors from a share of the mean of the documents, to them and to the anchors."""
    c, x = c or Constants(), unit(np.asarray(documents, dtype=np.float64))
    centre = centre_of(x, c)
    return unit(x - centre), unit(unit(np.asarray(anchors, dtype=np.float64)) - centre)


def centre_of(x, c):
    """A share of the mean of unit vectors."""
    length = np.linalg.norm(x.mean(axis=0))
    rest = c.mean_rest * np.sqrt(1 - length**2) / length
    return max(c.centring, 1 - rest) * x.mean(axis=0)


def damped(z, anchors):
    """Documents and anchors without what repeats; whether there is any. Not for known documents."""
    from sklearn.mixture import GaussianMixture

    n_dims = z.shape[1]
    variances, components = np.linalg.eigh(np.cov(z.T, bias=True))
    limit = np.median(variances[-max(len(anchors), 4) :])
    apart, matrix = anchors - anchors.mean(axis=0), np.eye(n_dims)
    for variance, component in list(zip(variances, components.T, strict=True))[
        -max(len(anchors), 4) :
    ]:
        if variance <= 2 * limit:
            continue
        if ((apart @ component) ** 2).sum() >= 2.5 * (apart**2).sum() / n_dims:
            continue
        values = (z @ component)[:, None]
        pair = GaussianMixture(2, n_init=2, random_state=0).fit(values / values.std())
        if abs(np.diff(pair.means_.ravel())[0]) <= 3 * np.sqrt(pair.covariances_.mean()):
            matrix -= (1 - np.sqrt(limit / variance)) * np.outer(component, component)
    return z @ matrix, unit(anchors @ matrix), not np.array_equal(matrix, np.eye(n_dims))


def kappa(x, anchors):
    """Mean Cohen's kappa of the nearest anchors in halves of the dimensions."""
    from scipy.fft import dct
    from sklearn.metrics import cohen_kappa_score

    random, found = np.random.default_rng(0), []
    k, d = anchors.shape
    for _ in range(max(1, min(4, 64 // k))):
        signs, order = random.choice([-1.0, 1.0], d), random.permutation(d)
        rows, names = dct(x * signs, norm="ortho"), dct(anchors * signs, norm="ortho")
        size = min(d // 2, 128)
        halves = order[:size], order[size : 2 * size]
        labels = [(rows[:, half] @ unit(names[:, half]).T).argmax(axis=1) for half in halves]
        found.append(cohen_kappa_score(*labels, labels=range(k)))
    return float(np.mean(found))


def discriminant(documents, anchors, known=None, counts=None, c=None, prior="estimate"):
    """The default method on all documents; scores (n_documents, n_labels) by the final rule."""
    c = c or Constants()
    x, a = unit(np.asarray(documents, dtype=np.float64)), unit(np.asarray(anchors, dtype=float))
    n, k, d = len(x), len(a), x.shape[1]
    known = np.full(n, -1) if known is None else np.asarray(known)
    is_known, one_hot = known >= 0, np.eye(k)

    def fix(shares):
        shares[is_known] = one_hot[known[is_known]]
        return shares

    first = x @ a.T
    near = np.where(is_known, known, first.argmax(axis=1))
    per_label = is_known.sum() / k
    z, anchor = centred(x, a, c)
    z, anchor, is_damped = damped(z, anchor)
    if is_damped:
        near = np.where(is_known, known, (z @ anchor.T).argmax(axis=1))
    found = kappa(z, anchor)
    by_names = float(np.clip(found / c.reliable, 0, 1))
    if is_known.any():  # examples, and what is nearest to the names, move the anchors
        moved = np.empty_like(anchor)
        for label in range(k):
            examples, nearest_ones = (x - centre_of(x, c))[known == label], z[near == label]
            count = by_names * min(c.few_documents / max(len(nearest_ones), 1), 1)
            mixed = unit((examples.sum(axis=0) + count * nearest_ones.sum(axis=0))[None])[0]
            moved[label] = anchor[label] + per_label / c.examples * mixed
        anchor = unit(moved)
    reliability = max(by_names, per_label / (per_label + c.examples))
    evidence = n / k / (n / k + c.few_documents)

    def log_sizes(sizes, weight):
        if not isinstance(prior, str):
            return np.log(np.asarray(prior) / np.sum(prior))
        if prior == "balanced":
            return np.zeros(k)
        added = c.size_share * sizes.sum() / k + c.size_count
        return weight * np.log((sizes + added) / (sizes.sum() + added * k))

    def entropy(labels):
        counts = np.bincount(labels, minlength=k)
        p = counts[counts > 0] / n
        return (-(p * np.log(p)).sum() + (len(p) - 1) / (2 * n)) / np.log(k)

    def skew(labels):
        share = (c.balanced - entropy(labels)) / (c.balanced - c.skewed)
        return float(np.clip(evidence * share, 0, 1))

    # Clusters.
    shares, votes, total, weight = one_hot[near], np.zeros((n, k)), np.zeros((k, d)), 0.0
    scale = c.sharpness / mean_lead(z @ anchor.T)
    fall = reliability * evidence * (c.first_anchor_weight - c.last_anchor_weight)
    weights = np.linspace(c.first_anchor_weight, c.first_anchor_weight - fall, c.cluster_passes)
    for w in weights:
        sizes, sums = shares.sum(axis=0), shares.T @ z
        common = np.linalg.norm(sums, axis=1).sum() / sizes.sum()
        scores = np.empty((n, k))
        for label in range(k):  # every document is left out of the cluster it is compared with
            own = shares[:, label][:, None]
            others = sizes[label] - own
            mean = (sums[label] - own * z) / np.maximum(others, 1e-3) / common
            mixed = (1 - w) * mean + w * anchor[label]
            mixed = np.where(others < 0.5, anchor[label], mixed)
            scores[:, label] = (z * unit(mixed)).sum(axis=1)
        mixed = (1 - w) * sums / np.maximum(sizes, 1e-3)[:, None] / common + w * anchor
        total += scale * unit(np.where(sizes[:, None] < 0.5, anchor, mixed))
        logits = scale * scores + log_sizes(sizes, weight)
        shares = softmax(logits, axis=1)
        votes += one_hot[logits.argmax(axis=1)]
        shares = fix(shares)
        scale, weight = c.sharpness / mean_lead(scores), skew(scores.argmax(axis=1))
    # Where the clusters collapse onto a few labels, names count more.
    lost = entropy(near) - entropy(scores.argmax(axis=1))
    kept = np.clip(
        (c.large_entropy_loss - lost) / (c.large_entropy_loss - c.small_entropy_loss), 0, 1
    )
    reliability = float(kept * reliability)
    # Gaussians.
    shares, tied = fix(votes / votes.sum(axis=1, keepdims=True)), None
    strength, shrink = c.tie * n / k, (c.shrink * n + d) / (n + d)
    for _ in range(c.gaussian_passes):
        sizes, sums = shares.sum(axis=0), shares.T @ z
        if tied is None:
            tied = sums / np.maximum(sizes, 1e-9)[:, None]
            expected = expected_means(sums, sizes, anchor)
        means = sums + strength * tied + c.few_documents * expected
        means /= (sizes + strength + c.few_documents)[:, None]
        spread = sum((shares[:, i, None] * (z - means[i])).T @ (z - means[i]) for i in range(k)) / n
        spread = (1 - shrink) * spread + shrink * np.trace(spread) / d * np.eye(d)
        slopes = c.temper * np.linalg.solve(spread, means.T).T
        offsets = -0.5 * (means * slopes).sum(axis=1)
        prior_logs = log_sizes(sizes, weight)
        shares = fix(softmax(z @ slopes.T + offsets + prior_logs, axis=1))

    # The rule.
    gaussians = z @ slopes.T + offsets
    differing = max(float((gaussians.argmax(axis=1) != near).mean()), 0.02)
    lead = max(c.lead, c.agreement_lead / differing)
    clusters = c.cluster_share * lead / (c.sharpness * c.cluster_passes) * (z @ total.T)
    refined = clusters + min(1.0, lead / mean_lead(gaussians)) * gaussians
    refined = refined / (1 + c.cluster_share) + prior_logs
    scores = reliability * refined + (1 - reliability) * lead / mean_lead(first) * first
    if counts is not None:
        logs, factor = reliability * prior_logs, reliability * evidence
        keep = weight if isinstance(prior, str) and prior == "estimate" else 0.0
        scores = scores + word_scores(counts, scores, known, logs, factor, keep)
    return scores


def expected_means(sums, sizes, anchors):
    """The mean of all documents, moved towards each anchor as far as documents are on average."""
    middle, directions = sums.sum(axis=0) / sizes.sum(), anchors - anchors.mean(axis=0)
    along = squares = 0.0
    for total, size, direction in zip(sums, sizes, directions, strict=True):
        along += (total - size * middle) @ direction
        squares += size * direction @ direction
    return middle + max(along / squares, 0.0) * directions


def word_scores(counts, scores, known, prior_logs, guard, keep=0.0, smoothing=0.3):
    """Naive Bayes taught by the scores; every step on dense arrays."""
    hashes = content_hashes(counts)
    folds = (hashes >> np.uint64(32)) % np.uint64(4)
    dense, k = counts.toarray().astype(float), scores.shape[1]
    n, frequency = len(dense), (dense > 0).sum(axis=0)
    used = (frequency >= 2) & (frequency <= max(2, n / 2))
    dense = dense[:, used]
    weights = np.where(dense > 0, 1 + np.log(np.maximum(dense, 1)), 0)
    weights *= np.log(n / frequency[used])
    weights = unit(weights)

    def posterior(logits):
        q = softmax(logits, axis=1)
        q[known >= 0] = np.eye(k)[known[known >= 0]]
        return q

    def bayes(totals, overall):
        added = smoothing * totals.sum() / k
        p = (totals + added * overall[:, None]) / (totals.sum(axis=0) + added)
        return np.log(p / overall[:, None])

    def share(totals):
        overall = totals.sum(axis=1) + 1e-9
        return overall / overall.sum()

    q = posterior(scores)
    everything = weights.T @ q
    held_out = np.zeros_like(scores)
    for fold in range(4):
        own = folds == fold
        rest = everything - weights[own].T @ q[own]
        held_out[own] = weights[own] @ bayes(rest, share(everything))
    lead = mean_lead(held_out)

    def cross_entropy(multiplier):
        logits = multiplier * held_out / lead + prior_logs
        return float((logsumexp(logits, axis=1) - (q * logits).sum(axis=1)).sum())

    found = (
        minimize_scalar(cross_entropy, bounds=(0, 32), method="bounded", options={"xatol": 0.01}).x
        / lead
    )
    added = guard * found * held_out
    shift = np.zeros(k)
    for _ in range(5):  # the labels keep their sizes
        shift += np.log((q.sum(axis=0) + 1) / (posterior(scores + added + shift).sum(axis=0) + 1))
    both = weights.T @ posterior(scores + added + keep * shift)
    return guard * found * (weights @ bayes(both, share(both))) + keep * shift
