"""Few-shot training: drawing examples, fine-tuning, refinement."""

import numpy as np
import pytest

from ulr.errors import TrainingError
from ulr.train import Examples, TrainingSettings, draw_examples, few_shot, refine_with_examples
from ulr.train.examples import base_settings
from ulr.train.instances import open_instances
from ulr.train.sources import PairSource


def labelled(words, names, each):
    texts = [words.sentence(name, f"few {i}") for name in names for i in range(each)]
    return texts, [name for name in names for _ in range(each)]


def test_the_same_seed_draws_the_same_number_of_examples_per_label(words):
    names = list(words.of)[:3]
    texts, labels = labelled(words, names, 40)
    drawn = draw_examples(texts, labels, names, per_label=7)
    assert [drawn.labels.count(name) for name in names] == [7, 7, 7]
    pairs = set(zip(texts, labels, strict=True))
    assert set(zip(drawn.texts, drawn.labels, strict=True)) <= pairs
    assert drawn == draw_examples(texts, labels, names, per_label=7)
    assert drawn != draw_examples(texts, labels, names, per_label=7, random_state=2)


def test_every_text_of_a_label_is_drawn_with_equal_probability():
    counts = np.zeros(20)
    for seed in range(600):
        drawn = draw_examples([str(i) for i in range(20)], ["x"] * 20, ["x"], 5, seed)
        counts[[int(text) for text in drawn.texts]] += 1
    assert np.abs(counts / 600 - 0.25).max() < 0.08


def test_all_texts_of_a_small_label_are_drawn_and_unlabelled_texts_are_ignored():
    drawn = draw_examples(["a", "b", "c"], ["x", None, "y"], ["x", "y"])
    assert drawn == Examples(["a", "c"], ["x", "y"])


@pytest.mark.parametrize(
    ("labels", "names", "message"),
    [
        (["x", "z"], ["x", "y"], "an example has the label 'z'; the labels are: x, y"),
        (["x", "x"], ["x", "y"], "there is no example of y"),
    ],
)
def test_examples_with_other_labels_are_refused(labels, names, message):
    with pytest.raises(TrainingError, match=message):
        draw_examples(["a", "b"], labels, names)


def test_few_shot_training_learns_the_labels_and_examples_keep_theirs(roberta, words, tmp_path):
    names = {"one": "rook", "two": "wool", "three": ["hive", "honey"]}
    kinds = ["chess", "knitting", "beekeeping"]
    texts = [words.sentence(kind, f"new {i}") for kind in kinds for i in range(10)]
    truth = np.repeat(np.arange(3), 10)
    few = [words.sentence(kind, f"few {i}") for kind in kinds for i in range(12)]
    examples = draw_examples(few, np.repeat(list(names), 12).tolist(), list(names), 12)
    settings = TrainingSettings("l2", batch_size=8, learning_rate=2e-3, n_jobs=1, max_tokens=32)
    report = few_shot(roberta, names, examples, tmp_path / "few", settings, epochs=6)
    assert report.n_instances == 6 * 36
    assert report.plan.n_held_out == 0
    classifier = refine_with_examples(tmp_path / "few", names, examples, texts, objective="l2")
    assert classifier.distance_ == "l2"
    predictions = classifier.refinement_.predictions
    assert (predictions[:30] == truth).mean() > 0.8
    assert predictions[30:].tolist() == [list(names).index(each) for each in examples.labels]
    assert base_settings(tmp_path / "few").objective == "l2"


def test_no_phrase_of_the_own_label_is_a_negative(tmp_path):
    file = tmp_path / "examples.jsonl"
    file.write_text('{"text": "t", "label": ["a", "b"]}\n{"text": "u", "label": ["c"]}\n')
    source = PairSource((str(file),), category_column="label", negatives="uniform")
    with open_instances([source], n_negatives=2, n_held_out=0, as_words=False) as instances:
        drawn = instances.take(instances.order(40))
    kinds = {"t": {("a", "c"), ("b", "c")}, "u": {("c", "a", "b"), ("c", "b", "a")}}
    assert all(each.categories in kinds[each.text] for each in drawn)
    assert len({each.categories for each in drawn if each.text == "t"}) == 2


def test_few_shot_training_refuses_single_encoders(roberta, tmp_path):
    examples = Examples(["a", "b"], ["x", "y"])
    with pytest.raises(TrainingError, match="needs a dual encoder, with dot or l2; got 'single'"):
        few_shot(roberta, ["x", "y"], examples, tmp_path / "out", TrainingSettings("single"))
    with pytest.raises(TrainingError, match="epochs must be at least 1; got 0"):
        few_shot(roberta, ["x", "y"], examples, tmp_path / "out", epochs=0)
