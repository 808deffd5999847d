"""`ulr update`: a saved model meets later documents; it is replaced as a whole or not at all."""

import json
import shutil

import pytest

from ulr.classifier import load
from ulr.jobs import Documents, update
from ulr.tables import open_table


@pytest.fixture
def model(classified, tmp_path):
    return shutil.copytree(classified.model, tmp_path / "model")


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_documents_of_the_model_have_not_changed(classified, model, command, tmp_path, read_csv):
    output, other = tmp_path / "out.csv", tmp_path / "other"
    result = command(
        "update", model, classified.source, "-t", "message", "-o", output,
        "--save-model", other, "--json",
    )  # fmt: skip
    assert (result.code, result.err) == (0, "")
    found = json.loads(result.out)
    assert (found["drift"]["changed"], found["drift"]["moved"]) == (False, 0)
    assert found["model"] == str(other)
    labels = [[row["ulr_label"] for row in read_csv(p)] for p in (classified.output, output)]
    assert labels[0] == labels[1]
    assert load(other).reference is not None


def test_summary_and_replacement_in_place(model, command, tmp_path):
    before = content(model)
    source = tmp_path / "new.txt"
    source.write_text("I forgot my password\n" * 60)
    result = command("update", model, source)
    assert "The model was not written" in result.out
    assert content(model) == before
    result = command("update", model, source, "--in-place")
    assert result.code == 0, result.err
    assert "Warning: The shares of the labels differ" in result.out
    assert "account access" in result.out
    assert content(model) != before
    assert "changed by more than chance" in command("update", model, source).out


def test_one_destination_that_may_be_replaced(model, command):
    result = command("update", model, "x.csv", "--in-place", "--save-model", "y")
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert "choose one" in result.err
    result = command("update", model, "x.csv", "--save-model", model)
    assert result.code == 1
    assert "already exists" in result.err


def test_a_stopped_update_leaves_the_old_model(classified, model, command, tmp_path):
    before = content(model)
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"text": "My parcel is late"}\n{"text": \n')
    result = command("update", model, broken, "--in-place")
    assert result.code == 1
    assert content(model) == before

    class Stop:
        def stage(self, name, total=None, unit="documents"):
            if name == "Labelling":
                raise KeyboardInterrupt

        def advance(self, count=1):
            pass

    with open_table([str(classified.source)]) as table, pytest.raises(KeyboardInterrupt):
        update(Documents(table, ("message",)), load(model), progress=Stop())
    assert content(model) == before
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []
