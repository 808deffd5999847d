"""Passes over blocks: independent of blocks and threads, picklable, nothing shared but values."""

import pickle
import threading
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
from problems import problem, topics, word_counts
from threadpoolctl import threadpool_info

from ulr.refinement import DISTANCES, METHODS, refine, refine_many, score
from ulr.refinement.blocks import EXCLUDED, UNFITTED, Blocks, Summary
from ulr.refinement.methods import choose_method

WAYS = [(method, distance) for method, each in METHODS.items() for distance in each.distances]


class PickledBlocks(Blocks):
    """Sends every step through pickle before it is applied."""

    def run(self, step):
        return super().run(pickle.loads(pickle.dumps(step)))


@dataclass(frozen=True)
class Total(Summary):
    total: float
    rows: int


@dataclass(frozen=True)
class Add:
    def __call__(self, block, state):
        return {"sums": block.documents.sum(axis=1)}, Total(
            float(block.documents.sum()), len(block)
        )


class Source:
    """Vectors that can only be sliced."""

    def __init__(self, rows):
        self._rows, self.shape = rows, rows.shape

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        return self._rows[rows]


def settings_of(block_rows, monkeypatch):
    """Make every refinement use blocks of so many rows."""
    original = Blocks.__init__

    def small(self, *args, **options):
        original(self, *args, **{**options, "block_rows": block_rows})

    monkeypatch.setattr(Blocks, "__init__", small)


@pytest.mark.parametrize(("method", "distance"), WAYS)
@pytest.mark.parametrize("block_rows", [7, 64])
def test_block_size_does_not_matter(method, distance, block_rows, monkeypatch):
    documents, anchors = problem(distance, 1)
    whole = refine(documents, anchors, method=method, distance=distance)
    settings_of(block_rows, monkeypatch)
    parts = refine(documents, anchors, method=method, distance=distance)
    assert (whole.predictions == parts.predictions).mean() >= 0.995
    scale = np.abs(whole.scores).max()
    np.testing.assert_allclose(parts.scores, whole.scores, atol=1e-2 * scale)


@pytest.mark.parametrize(("method", "distance"), WAYS)
def test_result_is_identical_for_any_number_of_threads(method, distance, monkeypatch):
    settings_of(64, monkeypatch)
    documents, anchors = problem(distance, 3, n=3000)
    one, many = (
        refine(documents, anchors, method=method, distance=distance, n_jobs=n) for n in (1, 5)
    )
    assert one.trace == many.trace
    np.testing.assert_array_equal(one.scores, many.scores)
    np.testing.assert_array_equal(one.centroids, many.centroids)


@pytest.mark.parametrize(("method", "distance"), WAYS)
def test_steps_can_be_pickled(method, distance, monkeypatch):
    documents, anchors = problem(distance, 5)
    expected = refine(documents, anchors, method=method, distance=distance)
    monkeypatch.setattr("ulr.refinement.api.Blocks", PickledBlocks)
    result = refine(documents, anchors, method=method, distance=distance)
    np.testing.assert_array_equal(result.scores, expected.scores)


@pytest.mark.parametrize(("method", "distance"), WAYS)
def test_sources_that_can_only_be_sliced_give_the_same(method, distance):
    documents, anchors = problem(distance, 6)
    expected = refine(documents, anchors, method=method, distance=distance)
    result = refine(Source(documents), anchors, method=method, distance=distance, n_jobs=2)
    np.testing.assert_array_equal(result.scores, expected.scores)
    np.testing.assert_array_equal(result.predictions, expected.predictions)


@pytest.mark.parametrize("distance", sorted(DISTANCES))
def test_inputs_are_not_changed(distance):
    documents, anchors = problem(distance, 1)
    anchors = np.eye(documents.shape[1]) if anchors is None else anchors
    copies = documents.copy(), anchors.copy()
    documents.setflags(write=False)
    anchors.setflags(write=False)
    refine(documents, anchors, distance=distance)
    np.testing.assert_array_equal(documents, copies[0])
    np.testing.assert_array_equal(anchors, copies[1])


def test_steps_are_immutable():
    from ulr.refinement.clusters import NearestAnchor

    with pytest.raises(FrozenInstanceError):
        NearestAnchor(np.eye(2)).anchors = np.eye(3)


def test_no_block_has_rows_of_two_parts_and_all_rows_count_once():
    parts = [np.ones((10, 3)), 2 * np.ones((5, 3))]
    with Blocks(parts, block_rows=4, n_jobs=2) as blocks:
        total = blocks.run(Add())
        assert (total.total, total.rows) == (60.0, 15)
        np.testing.assert_array_equal(blocks.state("sums"), [3.0] * 10 + [6.0] * 5)


@pytest.mark.parametrize("source", [np.asarray, Source])
def test_subset_and_gather_take_rows_by_position(source):
    rows = np.arange(60.0).reshape(20, 3)
    chosen = np.array([0, 3, 4, 11, 19])
    with Blocks([source(rows)], known=np.arange(20, dtype=np.int32), block_rows=4) as blocks:
        np.testing.assert_array_equal(blocks.gather(chosen), rows[chosen])
        with blocks.subset(chosen) as some:
            np.testing.assert_array_equal(some.gather(np.array([1, 4])), rows[[3, 19]])
            np.testing.assert_array_equal(some.known, chosen)
            assert some.run(Add()).total == rows[chosen].sum()


def test_an_error_in_a_pass_reaches_the_caller_and_the_blocks_can_be_used_again():
    documents, anchors, _ = topics(2, n=3000)

    def refuse(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        refine(documents, anchors, on_pass=refuse, n_jobs=3)
    assert refine(documents, anchors).n_iter > 1


def test_two_refinements_at_once_give_what_each_gives_alone():
    documents, anchors, truth = topics(7, n=4000, n_dims=64)
    counts = word_counts(truth)
    expected = refine(documents, anchors, word_counts=counts).scores
    found = {}

    def work(number):
        found[number] = refine(documents, anchors, word_counts=counts, n_jobs=2).scores

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for scores in found.values():
        np.testing.assert_array_equal(scores, expected)


def test_process_wide_thread_limits_are_left_alone():
    documents, anchors, _ = topics(8, n=3000)
    before = [each["num_threads"] for each in threadpool_info()]
    suspended = refine_many(documents, [anchors, anchors])
    next(suspended)
    refine(documents, anchors, n_jobs=2)
    assert [each["num_threads"] for each in threadpool_info()] == before
    suspended.close()


def test_many_known_documents_cost_no_more_than_a_pass():
    documents, anchors, truth = topics(9, n=20_000, n_dims=32)
    known = np.where(np.arange(len(truth)) < 15_000, truth, -1)
    passes = []
    refine(documents, anchors, known=known, method="ulr", on_pass=passes.append)
    assert passes[0].scored == 5_000  # known documents are never scored


@pytest.mark.parametrize("method", sorted(METHODS))
def test_excluded_documents_get_no_label_and_take_no_part(method):
    documents, anchors, _ = topics(10)
    known = np.full(len(documents), -1)
    known[::5] = EXCLUDED
    kept = known != EXCLUDED
    result = refine(documents, anchors, known=known, method=method)
    alone = refine(documents[kept], anchors, method=method)
    assert (result.predictions[~kept] == -1).all()
    assert (result.unrefined[~kept] == -1).all()
    assert result.n_without_label == int((~kept).sum())
    assert (result.predictions[kept] == alone.predictions).mean() > 0.995


@pytest.mark.parametrize("method", sorted(METHODS))
def test_unfitted_documents_get_a_label_and_take_no_part(method):
    documents, anchors, _ = topics(10)
    known = np.full(len(documents), -1)
    known[::5] = UNFITTED
    fitted = known != UNFITTED
    result = refine(documents, anchors, known=known, method=method)
    excluded = refine(documents, anchors, known=np.where(fitted, -1, EXCLUDED), method=method)
    np.testing.assert_array_equal(result.predictions[fitted], excluded.predictions[fitted])
    np.testing.assert_array_equal(result.predictions, score(documents, excluded.rule)[0])
    assert result.n_without_label == 0
    assert result.diagnosis == excluded.diagnosis


def test_zero_documents_get_no_label_under_cosine():
    documents, anchors, _ = topics(18)
    documents[[4, 9]] = 0.0
    result = refine(documents, anchors)
    assert result.n_without_label == 2
    np.testing.assert_array_equal(result.predictions[[4, 9]], -1)
    np.testing.assert_array_equal(result.scores[4], 0.0)


def test_every_method_name_is_chosen_by_distance():
    assert choose_method("auto", "cosine") == "discriminant"
    assert choose_method("auto", "l2") == "ulr"
