"""`ulr audit`: what it tells, what it draws, what it refuses, and how it goes on when killed."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import combinations, islice, product

import numpy as np
import pytest
from typer.testing import CliRunner

from ulr.cli import app
from ulr.encoders import load_encoder
from ulr.refine import refine

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
    """Short texts, so many of their words of one label, the others of any."""
    draw = random.Random(seed)
    every = [word for words in WORDS.values() for word in words]
    names = [draw.choice(list(WORDS)) for _ in range(n)]
    return [
        (" ".join([*draw.choices(WORDS[name], k=own), *draw.choices(every, k=3), str(i)]), name)
        for i, name in enumerate(names)
    ]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """The name of an encoder that is soon loaded: words near the others of their label."""
    random_ = np.random.default_rng(0)
    lines = []
    for name in LABELS:
        topic = random_.normal(size=12)
        for word in dict.fromkeys([*LABELS[name], *WORDS[name]]):
            vector = topic + 1.5 * random_.normal(size=12)
            lines.append(" ".join([word, *(f"{value:.4f}" for value in vector)]))
    lines.append(" ".join(["travel", *["0.5"] * 12]))
    path = tmp_path_factory.mktemp("words") / "words.txt"
    path.write_text("\n".join(lines) + "\n")
    return f"glove:{path}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a file of documents and files of labels, to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_rows(tmp_path / "in.csv", ["text", "section"], documents(60))
    few = {name: phrases[:2] for name, phrases in LABELS.items()} | {"food": "food"}
    (tmp_path / "labels.json").write_text(json.dumps(few))
    return tmp_path


@pytest.fixture
def audit(folder, encoder):
    """Run an audit in this process, which spares the start of another one."""

    def run(*options, labels="labels.json"):
        task = ["audit", "in.csv", "-l", labels, "--encoder", encoder]
        result = CliRunner().invoke(app, [*task, *map(str, options)])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        return result

    return run


@pytest.fixture
def figures(audit):
    """The figures of an audit."""

    def run(*options, **arguments):
        result = audit(*options, "--json", **arguments)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return run


# What it tells


def test_figures_are_those_of_every_set_refined_alone(folder, encoder, figures):
    found = figures("--truth", "section", "--work", "work")
    rows, encode = documents(60), load_encoder(encoder).encode
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
        told = [each[f"accuracy_{phase}"] for each in found["set_figures"]]
        assert told == pytest.approx(accuracy.tolist())
    assert [tuple(each["phrases"]) for each in found["set_figures"]] == sets
    chosen = found["recommendation"]
    assert tuple(chosen["phrases"]) == sets[chosen["number"] - 1]
    agreement = [each["agreement_after"] for each in found["set_figures"]]
    assert chosen["number"] == int(np.argmax(agreement)) + 1
    assert len(found["flipping"]) > 3
    for each in found["flipping"]:
        assert each["text"] == rows[each["row"] - 1][0]
        assert sum(share for _, share in each["labels"]) == pytest.approx(1.0)
        counts = np.bincount(after[:, each["row"] - 1], minlength=4) / len(sets)
        assert dict(each["labels"]) == pytest.approx(
            {name: share for name, share in zip(names, counts, strict=True) if share}
        )


def test_the_truth_changes_nothing_but_what_is_said_of_it(folder, figures):
    without, with_truth = figures(), figures("--truth", "section")
    assert without["truth"] is None
    assert without["set_figures"][0]["accuracy_after"] is None
    for name in ("agreement", "labels", "competing", "flipping", "recommendation"):
        assert without[name] == with_truth[name]


def test_people_are_told_the_same(folder, audit, figures):
    found = figures("--truth", "section", "--sample", 5, "--method", "ulr")
    result = audit("--truth", "section", "--sample", 5, "--method", "ulr")
    told = " ".join(result.stdout.split())
    assert "60 documents, 5 sets of names, drawn from 8; " in told
    assert f"on {found['agreement']['after']:.1%} refined" in told
    for name in LABELS:
        assert f"\n{name} " in result.stdout
    assert f"Recommended: {'; '.join(found['recommendation']['phrases'])}" in told
    assert "sets that improve" in told
    row = found["flipping"][0]["row"]
    assert f"row {row}, " in told
    assert result.stderr == ""


def test_a_sample_is_drawn_by_its_seed(folder, figures):
    one, again, other = (
        figures("--sample", 3, "--seed", seed, "--method", "none") for seed in (1, 1, 2)
    )
    sets = [[each["phrases"] for each in found["set_figures"]] for found in (one, again, other)]
    assert sets[0] == sets[1] != sets[2]
    assert (one["sets"], one["possible_sets"]) == (3, 8)


def test_whole_sets_come_from_a_file(folder, figures):
    (folder / "sets.txt").write_text("goal; bank; rain; soup\nmatch; loan; fog; bread\n")
    found = figures("--wordings", "sets.txt", "--method", "none")
    assert (found["sets"], found["possible_sets"]) == (2, 2)
    assert [each["phrases"] for each in found["set_figures"]][1] == [
        "match",
        "loan",
        "fog",
        "bread",
    ]
    assert [each["phrase"] for each in found["labels"][3]["phrases"]] == ["soup", "bread"]


def test_what_takes_part_beside_is_not_counted(folder, figures):
    write_rows(folder / "few.csv", ["text", "label"], [("wind goal", "food"), ("coach", "food")])
    write_rows(folder / "more.csv", ["text"], [[text] for text, _ in documents(20, seed=1)])
    beside = ["--examples", "few.csv", "--extra-texts", "more.csv", "--extra-labels", "travel"]
    found, plain = figures(*beside, "--method", "ulr"), figures("--method", "ulr")
    assert found["documents"] == plain["documents"] == 60
    assert sum(each["documents_after"] for each in found["labels"]) == pytest.approx(1.0)
    assert found["set_figures"] != plain["set_figures"]
    assert all(1 <= each["row"] <= 60 for each in found["flipping"])


# What it leaves behind


def test_nothing_is_left_where_work_was_kept(folder, figures):
    figures("--method", "none", "--work", "work")
    assert os.listdir(folder / "work") == []
    figures("--method", "none")
    assert os.listdir(folder / "cache" / "ulr" / "audits") == []


@pytest.mark.parametrize("name", ["a.png", "a.svg"])
def test_a_picture_is_drawn_and_kept_unless_forced(folder, name, audit, figures):
    options = ["--method", "none", "--truth", "section", "--plot", name]
    found = figures(*options)
    assert found["picture"] == name
    drawn = (folder / name).read_bytes()
    assert drawn.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
    (folder / name).write_bytes(b"mine")
    result = audit(*options)
    assert (result.exit_code, result.stdout) == (1, "")
    assert (
        f"{name} already exists; choose another name, or replace it with --force." in result.stderr
    )
    assert (folder / name).read_bytes() == b"mine"
    assert f"Drawn: {name}" in audit(*options, "--force").stdout
    assert (folder / name).read_bytes() == drawn


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--plot", "a.jpg"], "a.jpg: a picture's name must end in .png, .svg, .pdf."),
        (["--plot", "none/a.png"], "there is no folder none to write a.png into."),
        (["--truth", "category"], "in.csv has no column 'category'; it has: text, section. Choose"),
        (["--wordings", "average"], "an audit needs wordings: 'combinations', or a file of whole"),
        (["--wordings", "none.txt"], "there is no file none.txt."),
        (["--sample", "1"], "an audit compares wordings, and there is only one; give some labels"),
        (["--sample", "0"], "sample must be a positive whole number; got 0."),
        (["--method", "best"], "method must be one of auto, ulr, none, mixture; got 'best'."),
    ],
)
def test_what_cannot_be_is_one_sentence_before_any_work(folder, options, message, audit):
    before = sorted(os.listdir(folder))
    result = audit("--work", "work", *options)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("ulr: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert sorted(os.listdir(folder)) == before


def test_one_phrase_a_label_is_nothing_to_compare(folder, audit):
    result = audit(labels="sports, business")
    assert result.exit_code == 1
    assert "compares wordings, and there is only one; give some labels several" in result.stderr


def test_a_truth_that_is_no_label_keeps_what_is_finished(folder, audit, figures):
    rows = [*documents(60)[:-1], ("a goal", "football")]
    write_rows(folder / "in.csv", ["text", "section"], rows)
    result = audit("--method", "none", "--work", "work", "--truth", "section")
    assert result.exit_code == 1
    assert "in.csv row 60: the truth 'football' is not a label" in result.stderr
    assert figures("--method", "none", "--work", "work")["resumed_sets"] == 8
    write_rows(folder / "in.csv", ["text", "section"], [(text, "") for text, _ in rows])
    result = audit("--method", "none", "--truth", "section")
    assert "in.csv: column 'section' has no truth for any row." in result.stderr


def test_a_label_set_of_hundreds(folder, figures):
    every = [word for words in WORDS.values() for word in words]
    names = [" ".join(three) for three in islice(combinations(every, 3), 300)]
    (folder / "many.txt").write_text("sports: goal; match\n" + "".join(f"{n}\n" for n in names))
    found = figures("--method", "none", labels="many.txt")
    assert (len(found["labels"]), found["sets"]) == (301, 2)


# How it goes on


@pytest.fixture
def large(tmp_path):
    """A sweep of some files of sets, as a command without the name of its folder for work."""
    write_rows(tmp_path / "in.csv", ["text", "section"], documents(1500, own=3))
    (tmp_path / "labels.json").write_text(json.dumps(LABELS))
    task = [tmp_path / "in.csv", "-l", tmp_path / "labels.json", "--truth", "section"]
    return ["audit", *task, "--method", "ulr", "--json", "--work"]


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


def test_a_stopped_and_a_killed_audit_go_on_where_they_were(large, ulr, tmp_path):
    work = tmp_path / "work"
    assert stop(work, 1, signal.SIGINT, large) == (
        130,
        b"",
        "ulr: stopped; what is finished is kept; the same command goes on from there.\n",
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
    whole = CliRunner().invoke(app, [*map(str, large), str(work)])
    assert (whole.exit_code, whole.stderr) == (0, "")
    expected = json.loads(whole.stdout)
    assert (expected.pop("resumed_sets"), expected["sets"]) == (0, 320)
    assert found.pop("resumed_sets") == 64 * len(others) > 0
    assert expected.pop("seconds") != found.pop("seconds")
    assert found == expected
