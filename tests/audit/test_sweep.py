"""A sweep gives every set the result that it has alone, and keeps finished sets."""

import os
import zlib

import numpy as np
import pytest
from safetensors.numpy import load_file, save, save_file

from ulr.audit import audit, run_sweep
from ulr.classifier import DatalessClassifier
from ulr.errors import LabelError
from ulr.inputs import encode_inputs, known_labels
from ulr.labels import as_label_set
from ulr.refinement import refine

LABELS = {"sports": ["ball", "goal"], "money": ["bank", "coin", "cash"], "weather": ["weather"]}
TEXTS = [f"{word} {i % 7} {i % 5}" for i in range(15) for word in ("ball", "coin", "weather")]


class HashingEncoder:
    """A text is the sum of random vectors of its words, seeded by their hashes."""

    def __init__(self, seed=0):
        self.seed = seed

    def encode(self, texts):
        return np.array([sum(map(self._word, text.split())) for text in texts], np.float32)

    def _word(self, word):
        return np.random.default_rng([self.seed, zlib.crc32(word.encode())]).standard_normal(12)


def given(
    labels=LABELS,
    texts=TEXTS,
    y=None,
    extra_texts=None,
    phrasings="combinations",
    seed=0,
    **options,
):
    """Inputs, settings and phrasings of a task."""
    classifier = DatalessClassifier(
        labels, encoder=HashingEncoder(seed), phrasings=phrasings, **options
    )
    setup = classifier._resolve()
    known = None if y is None else known_labels(y, setup.labels.names, len(texts))[0]
    inputs = encode_inputs(setup, texts, known, extra_texts=extra_texts)
    return inputs, classifier._settings(setup), setup.phrasings


def sweep_of(task, folder, on_set=None, n_documents=None):
    return run_sweep(*task, folder, on_set, n_documents, sets_per_file=4)


def predictions(sweep, phase):
    return np.concatenate([block for _, block in sweep.blocks(phase)], axis=1)


def kept(folder):
    return sorted(file for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize(
    "options", [{}, {"method": "ulr", "distance": "l2"}, {"extra_labels": ["math", "art"]}]
)
def test_predictions_are_those_of_every_set_alone(tmp_path, options):
    inputs, settings, phrasings = given(extra_texts=["goal 3", "cash 4"], **options)
    sweep = sweep_of((inputs, settings, phrasings), tmp_path)
    assert (sweep.n_sets, sweep.n_documents, sweep.n_labels, sweep.n_resumed) == (6, 45, 3, 0)
    assert [load_file(file)["after"].shape for file in sweep.files] == [(4, 45), (2, 45)]
    for i, anchors in enumerate(inputs.anchor_sets):
        alone = refine(inputs.documents, anchors, **inputs.others, **settings)
        np.testing.assert_array_equal(predictions(sweep, "before")[i], alone.unrefined)
        np.testing.assert_array_equal(predictions(sweep, "after")[i], alone.predictions)


def test_examples_behind_the_documents_take_part_and_do_not_count(tmp_path):
    y = [*[None] * 45, "money", "sports"]
    task = inputs, settings, _ = given(texts=[*TEXTS, "ball 1 1", "coin 2 2"], y=y)
    sweep = sweep_of(task, tmp_path, n_documents=45)
    alone = refine(inputs.documents, inputs.anchor_sets[0], known=inputs.known, **settings)
    assert sweep.n_documents == 45
    np.testing.assert_array_equal(predictions(sweep, "after")[0], alone.predictions[:45])


def test_finished_sets_are_kept_and_every_set_is_reported(tmp_path):
    task = given()
    calls = []
    first = sweep_of(task, tmp_path, calls.append)
    assert calls == [6] * 6
    for file in first.files:
        os.utime(file, (1, 1))
    calls.clear()
    again = sweep_of(task, tmp_path, calls.append)
    assert (again.n_resumed, calls) == (6, [6] * 6)
    assert all(file.stat().st_mtime == 1 for file in again.files)
    first.files[1].unlink()
    partly = sweep_of(task, tmp_path)
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
def test_damaged_file_is_refined_again(tmp_path, damage):
    task = given()
    first = sweep_of(task, tmp_path)
    whole = [file.read_bytes() for file in first.files]
    damage(first.files[1])
    assert first.files[1].read_bytes() != whole[1]
    again = sweep_of(task, tmp_path)
    assert again.n_resumed == 4
    assert [load_file(file)["after"].tolist() for file in again.files] == [
        predictions(first, "after")[:4].tolist(),
        predictions(first, "after")[4:].tolist(),
    ]
    assert [file.read_bytes() for file in again.files] == whole


Y = ["money", *[None] * 44]
TASKS = {
    "as it is": {},
    "another encoder": {"seed": 1},
    "a template": {"template": "about {}"},
    "another phrase": {"labels": LABELS | {"weather": "rain"}},
    "another order": {"labels": LABELS | {"sports": ["goal", "ball"]}},
    "a sample": {"sample": 5},
    "another method": {"method": "ulr"},
    "another distance": {"method": "ulr", "distance": "dot"},
    "a prior": {"prior": "balanced"},
    "proportions": {"prior": np.array([0.5, 0.25, 0.25], dtype=np.float32)},
    "fewer passes": {"max_iter": 3},
    "examples": {"y": Y},
    "another example": {"y": ["sports", *Y[1:]]},
    "extra texts": {"extra_texts": ["math", "art"]},
    "extra labels": {"extra_labels": ["math", "art"]},
    "another text": {"texts": [*TEXTS[:-1], "rain"]},
}


def test_every_task_has_a_folder_of_its_own(tmp_path):
    places = {}
    for name, options in TASKS.items():
        sweep = sweep_of(given(**options), tmp_path)
        assert sweep.n_resumed == 0, name
        places[name] = sweep.files[0].parent
    assert len(set(places.values())) == len(TASKS)
    threads = sweep_of(given(n_jobs=1), tmp_path)
    assert (threads.files[0].parent, threads.n_resumed) == (places["as it is"], 6)


def test_one_phrasing_is_refused(tmp_path):
    alone = {"sports": "ball", "money": "bank"}
    for options in ({"labels": alone}, {"phrasings": [["a", "b", "c"]]}, {"phrasings": "average"}):
        with pytest.raises(LabelError, match="compares phrasings, and there is only one"):
            sweep_of(given(**options), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_sets_before_an_interrupted_one_are_kept(tmp_path):
    task = given()

    def stop(total):
        if kept(tmp_path):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep_of(task, tmp_path, stop)
    assert len(kept(tmp_path)) == 1
    assert sweep_of(task, tmp_path).n_resumed == 4


def test_more_labels_than_a_byte_can_count(tmp_path):
    names = {f"label{i}": ["first", "other"] if i == 0 else [f"label{i}"] for i in range(300)}
    texts = [f"label{i}" for i in range(299, 249, -1)]
    inputs, settings, phrasings = given(names, texts, method="none")
    sweep = run_sweep(inputs, settings, phrasings, tmp_path)
    assert load_file(sweep.files[0])["after"].dtype == np.uint16
    np.testing.assert_array_equal(predictions(sweep, "after"), [range(299, 249, -1)] * 2)
    found = audit(sweep, phrasings, phrasings.phrases(as_label_set(names)))
    assert (found.agreement_after, len(found.labels)) == (1.0, 300)
    assert found.labels[299].documents_after == pytest.approx(1 / 50)
    assert found.labels[0].agreement_after is None
