"""A sweep: every set as if refined alone, what is done kept, and nothing else taken for it."""

import os
import zlib

import numpy as np
import pytest
from safetensors.numpy import load_file, save, save_file

from ulr.audit import audit, run_sweep
from ulr.audit import sweep as sweeps
from ulr.classifier import DatalessClassifier
from ulr.errors import LabelError
from ulr.refine import refine
from ulr.tasks import encode, prepare

LABELS = {"sports": ["ball", "goal"], "money": ["bank", "coin", "cash"], "weather": None}
TEXTS = [f"{word} {i % 7} {i % 5}" for i in range(15) for word in ("ball", "coin", "weather")]


class HashingEncoder:
    """A vector a word, drawn from the word's own hash; a text is the sum of its words."""

    def __init__(self, seed=0):
        self.seed = seed

    def encode(self, texts):
        return np.array([sum(map(self._word, text.split())) for text in texts], np.float32)

    def _word(self, word):
        return np.random.default_rng([self.seed, zlib.crc32(word.encode())]).standard_normal(12)


def given(
    labels=LABELS, texts=TEXTS, y=None, extra_texts=None, wordings="combinations", seed=0, **options
):
    """Vectors and wordings of a task."""
    encoder = HashingEncoder(seed)
    asked = DatalessClassifier(labels, encoder=encoder, wordings=wordings, **options)
    task = prepare(asked)
    extra = None if extra_texts is None else [extra_texts]
    return encode(task, asked, [texts], y, extra, None), task.wordings


def predictions(sweep, phase):
    return np.concatenate([block for _, block in sweep.blocks(phase)], axis=1)


def kept(folder):
    return sorted(file for file in folder.rglob("*") if file.is_file())


@pytest.fixture(autouse=True)
def few_sets_a_file(monkeypatch):
    monkeypatch.setattr(sweeps, "_MOST_SETS", 4)


@pytest.mark.parametrize(
    "options", [{}, {"method": "ulr", "distance": "l2"}, {"extra_labels": ["math", "art"]}]
)
def test_predictions_are_those_of_every_set_alone(tmp_path, options):
    vectors, wordings = given(extra_texts=["goal 3", "cash 4"], **options)
    sweep = run_sweep(vectors, wordings, tmp_path)
    assert (sweep.n_sets, sweep.n_documents, sweep.n_labels, sweep.n_resumed) == (6, 45, 3, 0)
    assert [load_file(file)["after"].shape for file in sweep.files] == [(4, 45), (2, 45)]
    for i, labels in enumerate(vectors.sets):
        alone = refine(vectors.documents, labels, **vectors.beside, **vectors.settings)
        np.testing.assert_array_equal(predictions(sweep, "before")[i], alone.unrefined)
        np.testing.assert_array_equal(predictions(sweep, "after")[i], alone.predictions)


def test_examples_behind_the_documents_take_part_and_do_not_count(tmp_path):
    y = [*[None] * 45, "money", "sports"]
    vectors, wordings = given(texts=[*TEXTS, "ball 1 1", "coin 2 2"], y=y)
    sweep = run_sweep(vectors, wordings, tmp_path, n_documents=45)
    alone = refine(vectors.documents, vectors.sets[0], known=vectors.known, **vectors.settings)
    assert sweep.n_documents == 45
    np.testing.assert_array_equal(predictions(sweep, "after")[0], alone.predictions[:45])


def test_what_is_done_is_not_done_again_and_every_set_is_told(tmp_path):
    vectors, wordings = given()
    told = []
    first = run_sweep(vectors, wordings, tmp_path, told.append)
    assert told == [6] * 6
    for file in first.files:
        os.utime(file, (1, 1))
    told.clear()
    again = run_sweep(vectors, wordings, tmp_path, told.append)
    assert (again.n_resumed, told) == (6, [6] * 6)
    assert all(file.stat().st_mtime == 1 for file in again.files)
    first.files[1].unlink()
    partly = run_sweep(vectors, wordings, tmp_path)
    assert (partly.n_resumed, partly.files) == (4, first.files)


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-7]),
        lambda path: path.write_bytes(path.read_bytes()[:20]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"\xff" * 500),
        lambda path: path.write_bytes(path.read_bytes() + b"more"),
        lambda path: flip(path, -1),
        lambda path: flip(path, -200),
        lambda path: flip(path, 12),
        lambda path: path.write_bytes(save({"after": np.zeros((2, 45), dtype=np.uint8)})),
        lambda path: save_file(load_file(path), path),
    ],
    ids=[
        "torn", "torn early", "empty", "nonsense", "longer", "one bit after", "one bit before",
        "header", "half of it", "nothing to check it by",
    ],
)  # fmt: skip
def test_a_damaged_file_is_done_again(tmp_path, damage):
    vectors, wordings = given()
    first = run_sweep(vectors, wordings, tmp_path)
    whole = [file.read_bytes() for file in first.files]
    damage(first.files[1])
    assert first.files[1].read_bytes() != whole[1]
    again = run_sweep(vectors, wordings, tmp_path)
    assert again.n_resumed == 4
    assert [load_file(file)["after"].tolist() for file in again.files] == [
        predictions(first, "after")[:4].tolist(),
        predictions(first, "after")[4:].tolist(),
    ]
    assert [file.read_bytes() for file in again.files] == whole


def test_sets_of_other_documents_are_not_taken_for_these(tmp_path):
    vectors, wordings = given()
    sweep = run_sweep(vectors, wordings, tmp_path)
    run_sweep(*given(texts=TEXTS[:-1]), tmp_path)
    assert len({file.parent for file in kept(tmp_path)}) == 2
    assert run_sweep(vectors, wordings, tmp_path).files == sweep.files


Y = ["money", *[None] * 44]
TASKS = {
    "as it is": {},
    "another encoder": {"seed": 1},
    "a template": {"template": "about {}"},
    "another phrase": {"labels": LABELS | {"weather": "rain"}},
    "another order": {"labels": LABELS | {"sports": ["goal", "ball"]}},
    "a sample": {"sample": 5},
    "another method": {"method": "ulr"},
    "another distance": {"distance": "dot"},
    "a prior": {"prior": "balanced"},
    "proportions": {"prior": np.array([0.5, 0.25, 0.25], dtype=np.float32)},
    "fewer passes": {"max_iterations": np.int64(3)},
    "examples": {"y": Y},
    "another example": {"y": ["sports", *Y[1:]]},
    "extra texts": {"extra_texts": ["math", "art"]},
    "extra labels": {"extra_labels": ["math", "art"]},
    "another text": {"texts": [*TEXTS[:-1], "rain"]},
}


def test_every_task_has_a_place_of_its_own(tmp_path):
    places = {}
    for name, options in TASKS.items():
        sweep = run_sweep(*given(**options), tmp_path)
        assert sweep.n_resumed == 0, name
        places[name] = sweep.files[0].parent
    assert len(set(places.values())) == len(TASKS)
    threads = run_sweep(*given(threads=1), tmp_path)
    assert (threads.files[0].parent, threads.n_resumed) == (places["as it is"], 6)


def test_only_one_wording_is_nothing_to_compare(tmp_path):
    alone = {"sports": "ball", "money": "bank"}
    for options in ({"labels": alone}, {"wordings": [["a", "b", "c"]]}, {"wordings": "average"}):
        with pytest.raises(LabelError, match="compares wordings, and there is only one; give some"):
            run_sweep(*given(**options), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_set_that_fails_leaves_those_before_it(tmp_path):
    vectors, wordings = given()

    def stop(total):
        if kept(tmp_path):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_sweep(vectors, wordings, tmp_path, stop)
    assert len(kept(tmp_path)) == 1
    assert run_sweep(vectors, wordings, tmp_path).n_resumed == 4


def test_more_labels_than_a_byte_can_count(tmp_path):
    names = {f"label{i}": ["first", "other"] if i == 0 else None for i in range(300)}
    texts = [f"label{i}" for i in range(299, 249, -1)]
    vectors, wordings = given(names, texts, method="none")
    sweep = run_sweep(vectors, wordings, tmp_path)
    assert load_file(sweep.files[0])["after"].dtype == np.uint16
    np.testing.assert_array_equal(predictions(sweep, "after"), [range(299, 249, -1)] * 2)
    found = audit(sweep, wordings, wordings.phrases(prepare_labels(names)))
    assert (found.agreement_after, len(found.labels)) == (1.0, 300)
    assert found.labels[299].documents_after == pytest.approx(1 / 50)
    assert found.labels[0].agreement_after is None


def prepare_labels(names):
    return prepare(DatalessClassifier(names, encoder=HashingEncoder())).labels


def test_labels_that_a_byte_can_count_take_one(tmp_path):
    sweep = run_sweep(*given(), tmp_path)
    assert load_file(sweep.files[0])["after"].dtype == np.uint8
