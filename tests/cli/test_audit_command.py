"""`ulr audit`: its figures, its picture, its errors, and how it continues when stopped."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import product

import numpy as np
import pytest

from ulr.encoders import load_encoder
from ulr.refinement import refine

LABELS = {
    "sports": ["sports", "football", "tennis", "athletes"],
    "business": ["business", "money", "banks", "shops"],
    "weather": ["weather", "rain", "storm", "sunshine"],
    "food": ["food", "cooking", "recipes", "kitchen", "meals"],
}
WORDS = {
    "sports": ["goal", "match", "striker", "coach", "team", "penalty"],
    "business": ["bank", "profit", "shares", "loan", "market", "investor"],
    "weather": ["rain", "fog", "snow", "wind", "storm", "sunshine"],
    "food": ["soup", "bread", "salad", "cheese", "dinner", "oven"],
}


def write_rows(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def documents(n, own=1, seed=0):
    """Short texts with some words of one label, the others of any."""
    draw = random.Random(seed)
    every = [word for words in WORDS.values() for word in words]
    names = [draw.choice(list(WORDS)) for _ in range(n)]
    return [
        (" ".join([*draw.choices(WORDS[name], k=own), *draw.choices(every, k=3), str(i)]), name)
        for i, name in enumerate(names)
    ]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a file of documents and one of labels."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_rows(tmp_path / "in.csv", ["text", "section"], documents(60))
    few = {name: phrases[:2] for name, phrases in LABELS.items()} | {"food": "food"}
    (tmp_path / "labels.json").write_text(json.dumps(few))
    return tmp_path


@pytest.fixture
def audit(folder, command, word_vectors):
    """Run an audit with word vectors."""

    def run(*options, labels="labels.json"):
        return command("audit", "in.csv", "-l", labels, "--encoder", word_vectors, *options)

    return run


@pytest.fixture
def figures(audit):
    """The figures of an audit."""

    def run(*options, **arguments):
        result = audit(*options, "--json", **arguments)
        assert result.code == 0, result.err
        return json.loads(result.out)

    return run


# Figures


def test_figures_are_those_of_every_set_refined_alone(folder, word_vectors, figures):
    found = figures("--truth", "section", "--work", "work")
    rows, encode = documents(60), load_encoder(word_vectors).encode
    vectors, names = encode([text for text, _ in rows]), list(LABELS)
    truth = np.array([names.index(name) for _, name in rows])
    given = json.loads((folder / "labels.json").read_text()).values()
    phrases = [each if isinstance(each, list) else [each] for each in given]
    sets = list(product(*phrases))
    alone = [refine(vectors, encode(list(each))) for each in sets]
    after = np.array([each.predictions for each in alone])
    before = np.array([each.unrefined for each in alone])
    assert (found["documents"], found["sets"], found["possible_sets"]) == (60, 8, 8)
    for phase, predicted in (("before", before), ("after", after)):
        same = [(one == other).mean() for i, one in enumerate(predicted) for other in predicted[:i]]
        assert found["agreement"][phase] == pytest.approx(np.mean(same))
        accuracy = (predicted == truth).mean(axis=1)
        assert found["truth"][f"mean_{phase}"] == pytest.approx(accuracy.mean())
        found_by_set = [each[f"accuracy_{phase}"] for each in found["set_figures"]]
        assert found_by_set == pytest.approx(accuracy.tolist())
    assert [tuple(each["phrases"]) for each in found["set_figures"]] == sets
    chosen = found["recommendation"]
    assert tuple(chosen["phrases"]) == sets[chosen["number"] - 1]
    agreement = [each["agreement_after"] for each in found["set_figures"]]
    assert chosen["number"] == int(np.argmax(agreement)) + 1
    assert len(found["unstable"]) > 3
    for each in found["unstable"]:
        assert each["text"] == rows[each["row"] - 1][0]
        assert sum(share for _, share in each["labels"]) == pytest.approx(1.0)
        counts = np.bincount(after[:, each["row"] - 1], minlength=4) / len(sets)
        assert dict(each["labels"]) == pytest.approx(
            {name: share for name, share in zip(names, counts, strict=True) if share}
        )


def test_truth_changes_no_other_figure(folder, figures):
    without, with_truth = figures(), figures("--truth", "section")
    assert without["truth"] is None
    assert without["set_figures"][0]["accuracy_after"] is None
    for name in ("agreement", "labels", "competing", "unstable", "recommendation"):
        assert without[name] == with_truth[name]


def test_text_has_the_figures_of_the_json(folder, audit, figures):
    found = figures("--truth", "section", "--sample", 5, "--method", "ulr")
    result = audit("--truth", "section", "--sample", 5, "--method", "ulr")
    shown = " ".join(result.out.split())
    assert "60 documents, 5 sets of names, drawn from 8; " in shown
    assert f"on {found['agreement']['after']:.1%} refined" in shown
    for name in LABELS:
        assert f"\n{name} " in result.out
    assert f"Recommended: {'; '.join(found['recommendation']['phrases'])}" in shown
    assert "sets that improve" in shown
    row = found["unstable"][0]["row"]
    assert f"row {row}, " in shown
    assert result.err == ""


def test_examples_and_extra_texts_take_part_and_are_not_counted(folder, figures):
    write_rows(folder / "few.csv", ["text", "label"], [("wind goal", "food"), ("coach", "food")])
    write_rows(folder / "more.csv", ["text"], [[text] for text, _ in documents(20, seed=1)])
    beside = ["--examples", "few.csv", "--extra-texts", "more.csv", "--extra-labels", "travel"]
    found, plain = figures(*beside, "--method", "ulr"), figures("--method", "ulr")
    assert found["documents"] == plain["documents"] == 60
    assert sum(each["documents_after"] for each in found["labels"]) == pytest.approx(1.0)
    assert found["set_figures"] != plain["set_figures"]
    assert all(1 <= each["row"] <= 60 for each in found["unstable"])


# Files


def test_work_folder_is_empty_afterwards(folder, figures):
    figures("--method", "none", "--work", "work")
    assert os.listdir(folder / "work") == []
    figures("--method", "none")
    assert os.listdir(folder / "cache" / "ulr" / "audits") == []


@pytest.mark.parametrize("name", ["a.png", "a.svg"])
def test_picture_is_drawn_and_kept_unless_forced(folder, name, audit, figures):
    options = ["--method", "none", "--truth", "section", "--plot", name]
    found = figures(*options)
    assert found["picture"] == name
    drawn = (folder / name).read_bytes()
    assert drawn.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
    (folder / name).write_bytes(b"mine")
    result = audit(*options)
    assert (result.code, result.out) == (1, "")
    assert f"{name} already exists" in result.err
    assert (folder / name).read_bytes() == b"mine"
    assert f"Drawn: {name}" in audit(*options, "--force").out
    assert (folder / name).read_bytes() == drawn


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--plot", "a.jpg"], "a.jpg: a picture's name must end in .png, .svg, .pdf."),
        (["--plot", "none/a.png"], "there is no folder none to write a.png into."),
        (["--truth", "category"], "in.csv has no column 'category'; it has: text, section"),
        (
            ["--phrasings", "average"],
            "an audit needs phrasings",
        ),
        (["--phrasings", "none.txt"], "there is no file none.txt."),
        (["--sample", "1"], "an audit compares phrasings, and there is only one"),
        (["--sample", "0"], "sample must be a positive whole number"),
        (["--method", "best"], "method must be one of"),
    ],
)
def test_bad_option_is_one_line_before_any_work(folder, options, message, audit):
    before = sorted(os.listdir(folder))
    result = audit("--work", "work", *options)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("ulr: ")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert sorted(os.listdir(folder)) == before


def test_bad_truth_keeps_finished_sets(folder, audit, figures):
    rows = [*documents(60)[:-1], ("a goal", "football")]
    write_rows(folder / "in.csv", ["text", "section"], rows)
    result = audit("--method", "none", "--work", "work", "--truth", "section")
    assert result.code == 1
    assert "in.csv row 60: the true label 'football' is not a label" in result.err
    assert figures("--method", "none", "--work", "work")["resumed_sets"] == 8
    write_rows(folder / "in.csv", ["text", "section"], [(text, "") for text, _ in rows])
    result = audit("--method", "none", "--truth", "section")
    assert "no row has a true label in column 'section'" in result.err


def test_documents_without_known_words_are_one_error(folder, audit):
    write_rows(folder / "in.csv", ["text", "section"], [("zzz", "food"), ("qqq", "food")])
    result = audit("--work", "work")
    assert (result.code, result.out) == (1, "")
    assert "no document has a word that the encoder knows" in result.err


# Stopped audits


@pytest.fixture
def large(tmp_path, word_vectors):
    """An audit of several files of sets, without the name of its work folder."""
    write_rows(tmp_path / "in.csv", ["text", "section"], documents(1000, own=3))
    (tmp_path / "labels.json").write_text(json.dumps(LABELS))
    task = [tmp_path / "in.csv", "-l", tmp_path / "labels.json", "--truth", "section"]
    return ["audit", *task, "--method", "ulr", "--json", "--encoder", word_vectors, "--work"]


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "ulr", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def stop(work, n_files, number, command):
    """Start the command and stop it as soon as some files of sets are finished."""
    with start(*command, work) as process:
        try:
            for _ in range(12_000):
                if len(list(work.glob("*/sets-*"))) >= n_files:
                    break
                assert process.poll() is None, process.stderr.read().decode()
                time.sleep(0.005)
            assert process.poll() is None, "it ended before it could be stopped"
            process.send_signal(number)
            out, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    return process.returncode, out, errors.decode()


def test_stopped_and_killed_audits_continue(large, ulr, command, tmp_path):
    work = tmp_path / "work"
    assert stop(work, 1, signal.SIGINT, large) == (
        130,
        b"",
        "ulr: stopped; finished sets are kept; the same command continues from there.\n",
    )
    finished = len(list(work.glob("*/sets-*")))
    assert 1 <= finished < 5
    assert stop(work, finished + 1, signal.SIGKILL, large) == (-signal.SIGKILL, b"", "")
    torn, *others = sorted(work.glob("*/sets-*"))
    torn.write_bytes(torn.read_bytes()[:-1000])
    result = ulr(*large, work)
    assert (result.code, result.err) == (0, "")
    found = json.loads(result.out)
    assert os.listdir(work) == []
    whole = command(*large, work)
    assert (whole.code, whole.err) == (0, "")
    expected = json.loads(whole.out)
    assert (expected.pop("resumed_sets"), expected["sets"]) == (0, 320)
    assert found.pop("resumed_sets") == 64 * len(others) > 0
    assert expected.pop("seconds") != found.pop("seconds")
    assert found == expected
