"""Documents and labels of many kinds, made from a seed."""

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import softmax

from ulr.refinement import score_all


def topics(
    seed=0, n=400, n_labels=4, n_dims=16, spread=0.9, off=0.7, common=2.0, sizes=None, repeated=0.0
):
    """Documents of some topics with much in common, anchors beside the topics, the true labels.

    Something else is repeated in them, more or less often.
    """
    random = np.random.default_rng(seed)
    shared = common * random.normal(size=n_dims)
    means = random.normal(size=(n_labels, n_dims))
    truth = random.choice(n_labels, size=n, p=sizes)
    documents = shared + means[truth] + spread * random.normal(size=(n, n_dims))
    anchors = shared + means + off * random.normal(size=(n_labels, n_dims))
    if repeated:
        documents += repeated * random.normal(1.0, 0.3, size=(n, 1)) * random.normal(size=n_dims)
    return documents.astype(np.float32), anchors.astype(np.float32), truth


def long_and_short(seed=0, n=1500, n_labels=6, n_dims=48, spread=0.9):
    """As `topics`, but half of the documents are long: they share more, and the first name shares it.

    Clusters of such documents collapse onto the first label.
    """
    random = np.random.default_rng(seed)
    means = random.normal(size=(n_labels, n_dims))
    shared = random.normal(size=n_dims)
    shared *= np.sqrt(n_dims) / np.linalg.norm(shared)
    truth = random.integers(n_labels, size=n)
    is_long = (random.uniform(size=n) < 0.5)[:, None]
    noise = np.where(is_long, 0.5, 1.0) * spread * random.normal(size=(n, n_dims))
    documents = 0.3 * means[truth] + np.where(is_long, 1.0, 0.15) * shared + noise
    anchors = means + 0.4 * random.normal(size=(n_labels, n_dims))
    anchors[0] += 0.2 * shared
    return documents.astype(np.float32), anchors.astype(np.float32), truth


def probabilities(seed=0, **kind):
    """Distributions over labels, as of a single encoder."""
    documents, anchors, _ = topics(seed, common=0.0, **kind)
    return softmax(documents.astype(np.float64) @ anchors.T, axis=1)


def problem(distance, seed=0, **kind):
    """Documents and anchors that suit a distance."""
    if distance == "jensen-shannon":
        return probabilities(seed, **kind), None
    return topics(seed, **kind)[:2]


def word_counts(truth, n_words=60, seed=0):
    """Sparse counts of words, some of which tell the labels apart."""
    random = np.random.default_rng(seed)
    n_labels = int(truth.max()) + 1
    rates = random.gamma(0.3, size=(n_labels, n_words)) * 3
    return csr_matrix(random.poisson(rates[truth]).astype(np.float32))


def documents_of(kind, random, n, d):
    """Data of very different shapes."""
    if kind == "gaussian":
        return random.normal(size=(n, d))
    if kind == "clustered":
        means = 3 * random.normal(size=(5, d))
        return means[random.integers(5, size=n)] + random.normal(size=(n, d))
    if kind == "offset":  # a common part that dwarfs the differences
        return 50 + random.normal(size=(n, d))
    if kind == "duplicated":
        return random.normal(size=(max(1, n // 10), d))[random.integers(max(1, n // 10), size=n)]
    if kind == "grid":  # exact ties everywhere
        return random.integers(-1, 2, size=(n, d)).astype(float)
    if kind == "sparse":
        return random.normal(size=(n, d)) * (random.random((n, d)) < 0.1)
    if kind == "scaled":  # lengths over many orders of magnitude
        return random.normal(size=(n, d)) * 10.0 ** random.uniform(-5, 5, size=(n, 1))
    raise AssertionError(kind)


KINDS = ["gaussian", "clustered", "offset", "duplicated", "grid", "sparse", "scaled"]


def score(documents, rule, **options):
    """Labels and scores by one rule."""
    [labels], scores = score_all(documents, [rule], **options)
    return labels, scores
