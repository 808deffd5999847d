"""Few labelled examples: drawing them, and fine-tuning on them."""

import io
import json

import numpy as np
import pytest

from ulr.encoders import load_encoder
from ulr.errors import TrainingError
from ulr.train import (
    Examples,
    PairSource,
    TrainingSettings,
    base_settings,
    draw_examples,
    few_shot_instances,
    read_examples,
    train,
)
from ulr.train.instances import Instances


def test_the_same_seed_draws_the_same_number_of_examples_per_label(words):
    names = list(words.of)[:3]
    labels = [name for name in names for _ in range(40)]
    texts = [words.sentence(name, f"few {i}") for i, name in enumerate(labels)]
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


def test_examples_may_lack_a_label_or_text_and_differ_in_case_in_a_file(tmp_path):
    drawn = draw_examples(["a", "b", " ", "c"], ["x", None, "x", "y"], ["x", "y"])
    assert drawn == Examples(["a", "c"], ["x", "y"])
    file = tmp_path / "examples.csv"
    file.write_text("text,label\na,X \nc,y\nthree,\n")
    assert read_examples(PairSource((str(file),)), ["x", "y"]) == drawn


def test_few_shot_training_learns_the_labels(roberta, words, tmp_path):
    names = {"one": "rook", "two": "wool", "three": ["hive", "honey"]}
    kinds = ["chess", "knitting", "beekeeping"]
    texts = [words.sentence(kind, f"new {i}") for kind in kinds for i in range(10)]
    few = [words.sentence(kind, f"few {i}") for kind in kinds for i in range(12)]
    examples = draw_examples(few, np.repeat(list(names), 12).tolist(), list(names), 12)
    settings = TrainingSettings("l2", batch_size=8, learning_rate=2e-3, n_jobs=1, max_tokens=32)
    sources, settings = few_shot_instances(roberta, names, examples, settings, epochs=6)
    report = train(roberta, sources, tmp_path / "few", settings)
    assert (report.plan.n_instances, report.plan.n_held_out) == (6 * 36, 0)
    encoder = load_encoder(f"hf:{tmp_path / 'few'}")
    distances = encoder.encode(texts)[:, None] - encoder.encode(["rook", "wool", "hive"])[None]
    nearest = np.square(distances).sum(axis=2).argmin(axis=1)
    assert (nearest == np.repeat(np.arange(3), 10)).mean() > 0.8
    assert base_settings(tmp_path / "few") == TrainingSettings("l2", max_tokens=32)


def test_no_phrase_of_the_own_label_is_a_negative(roberta):
    examples = Examples(["t", "u"], ["one", "two"])
    sources, settings = few_shot_instances(
        roberta, {"one": ["a", "b"], "two": "c_d"}, examples, epochs=20
    )
    windows = Instances(sources, io.BytesIO(), settings).in_training_order(40)
    found = {(each.text, *each.categories) for window in windows for each in window}
    assert found == {
        ("t", "a", "c_d"),
        ("t", "b", "c_d"),
        ("u", "c_d", "a", "b"),
        ("u", "c_d", "b", "a"),
    }


TWO = Examples(["a", "b"], ["x", "y"])


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (draw_examples, ["ab", "xz", "xy"], "an example has the label 'z'; the labels are: x, y"),
        (draw_examples, ["ab", "xx", "xy"], "there is no example of y"),
        (draw_examples, ["ab", "xy", "xy", 0], "per_label must be at least 1; got 0"),
        (few_shot_instances, ["base", "xy", TWO, None, 0], "epochs must be at least 1; got 0"),
        (
            few_shot_instances,
            ["base", "xy", TWO, TrainingSettings("single")],
            "needs a dual encoder, with dot or l2; got 'single'",
        ),
    ],
)
def test_unsuitable_examples_and_settings_are_refused(make, arguments, message):
    with pytest.raises(TrainingError, match=message):
        make(*arguments)


def test_a_damaged_report_of_the_base_is_ignored(tmp_path):
    (tmp_path / "training.json").write_text(json.dumps({"plan": None}))
    assert base_settings(tmp_path) == TrainingSettings()
