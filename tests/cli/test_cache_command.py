"""`--cache` and `ulr cache`, on real files."""

import json

import pytest


@pytest.fixture
def news(tmp_path):
    file = tmp_path / "news.csv"
    texts = ["The striker scored", "Shares fell", "A late goal", "The bank raised rates"]
    file.write_text("text\n" + "\n".join(texts) + "\n")
    return file


def test_cache_is_filled_used_shown_and_cleared(command, news, tmp_path):
    vectors = tmp_path / "vectors"
    given = ["classify", news, "-l", "sports, business", "--cache", vectors, "-o"]
    assert command(*given, tmp_path / "one.csv").code == 0
    shown = command("cache", vectors, "--json")
    (entry,) = json.loads(shown.out)["encoders"]
    assert (entry["texts"], entry["dimensions"], entry["damaged_megabytes"]) == (6, 256, 0)
    assert command(*given, tmp_path / "two.csv").code == 0
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    assert json.loads(command("cache", vectors, "--json").out)["encoders"] == [entry]
    assert "static wordllama" in command("cache", vectors).out
    assert "removed" in command("cache", vectors, "--clear").out
    assert command("cache", vectors).out == "The cache is empty.\n"


def test_evaluate_and_predict_take_it_too(command, news, tmp_path):
    model, vectors = tmp_path / "model", tmp_path / "vectors"
    labels = ["-l", "sports, business"]
    header, *texts = news.read_text().splitlines()
    news.write_text("\n".join([f"{header},truth", *(f"{text},sports" for text in texts)]))
    given = ["-t", "text", "--cache", vectors]
    assert command("evaluate", news, *labels, "--truth", "truth", *given).code == 0
    assert command("classify", news, *labels, "--save-model", model, *given).code == 0
    assert command("predict", model, news, *given, "-o", tmp_path / "out.csv").code == 0
    (entry,) = json.loads(command("cache", vectors, "--json").out)["encoders"]
    assert entry["texts"] == 6


def test_folder_without_a_cache_is_one_error(command, news, tmp_path):
    result = command("cache", tmp_path / "nowhere")
    assert (result.code, result.out) == (1, "")
    assert "there is no cache" in result.err
    result = command("classify", news, "-l", "a, b", "--cache", news, "-o", tmp_path / "out.csv")
    assert result.code == 1
    assert "cannot be used: Not a directory." in result.err
    assert not (tmp_path / "out.csv").exists()
