"""The map: neighbours stay neighbours, the same seed gives the same map."""

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from ulr.report import Layout


def groups(n, n_groups=6, n_dims=40, spread=0.5, seed=0):
    """Vectors around some centres, sorted by group, and their groups."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_groups, n_dims))
    members = np.sort(rng.integers(0, n_groups, n))
    return centres[members] + spread * rng.normal(size=(n, n_dims)), members, centres


def nearest(positions, count):
    distances = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1)[:, :count]


@pytest.mark.parametrize("n_dims", [40, 1500])
def test_neighbours_on_the_map_are_neighbours_in_the_vectors(n_dims):
    vectors, members, _ = groups(600, n_groups=20, n_dims=n_dims)
    positions = Layout(vectors).positions
    assert trustworthiness(vectors, positions, n_neighbors=10, metric="cosine") > 0.9
    assert (members[nearest(positions, 10)] == members[:, None]).mean() > 0.95


def test_the_same_seed_and_directions_give_the_same_map():
    vectors, _, _ = groups(300)
    first = Layout(vectors, random_state=3).positions
    scaled = vectors * np.random.default_rng(1).choice([0.5, 2.0, 4.0], size=(300, 1))
    np.testing.assert_array_equal(first, Layout(scaled, random_state=3).positions)
    assert not np.allclose(first, Layout(vectors, random_state=4).positions)


def test_other_vectors_are_placed_among_their_nearest_documents():
    vectors, members, centres = groups(600)
    layout = Layout(vectors)
    for group, place in enumerate(layout.places(centres)):
        distances = np.linalg.norm(layout.positions - place, axis=1)
        assert (members[np.argsort(distances)[:15]] == group).mean() > 0.9


@pytest.mark.parametrize("n", [1, 2, 3, 5, 16, 17])
def test_few_documents_get_finite_positions_in_the_unit_square(n):
    vectors, _, centres = groups(n)
    layout = Layout(vectors)
    assert layout.positions.shape == (n, 2)
    assert ((layout.positions >= 0) & (layout.positions <= 1)).all()
    assert np.isfinite(layout.places(centres)).all()


def test_equal_documents_are_near_each_other_and_others_repel():
    vectors, _, _ = groups(500, n_groups=1, spread=3.0)
    cells = np.unique((Layout(vectors).positions * 20).astype(int), axis=0)
    assert len(cells) > 200
    vectors, _, _ = groups(30)
    layout = Layout(np.repeat(vectors, 12, axis=0))
    same = np.repeat(np.arange(30), 12)
    assert (same[nearest(layout.positions, 5)] == same[:, None]).mean() > 0.9
    assert np.isfinite(Layout(np.ones((40, 4))).positions).all()
