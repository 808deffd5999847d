"""A real language model; `benchmarks/language_model.py` says where it is to be had."""

import importlib.util
import os
from pathlib import Path

import pytest

from benchmarks.language_model import serve
from ulr.advisers import Interview, OpenAIAdviser, ask_for_label, ask_for_phrases
from ulr.labels import as_label_set

MODEL = os.environ.get("ULR_LLM")
LABELS = as_label_set(["sports", "business", "weather", "cooking"])
HEADLINES = [
    ("Late penalty sends the home side into the cup final", 0),
    ("Marathon runner breaks a record that stood for ten years", 0),
    ("Bank shares fall after a surprise rise of interest rates", 1),
    ("Carmaker reports higher profits in the third quarter", 1),
    ("Heavy snow and strong winds are expected in the north", 2),
    ("No rain in sight as the heat wave enters its third week", 2),
    ("How to bake bread with a crisp crust in an ordinary oven", 3),
    ("Five quick soups for cold evenings", 3),
]


@pytest.mark.llm
@pytest.mark.skipif(MODEL is None, reason="ULR_LLM does not name a model file (GGUF)")
@pytest.mark.skipif(not importlib.util.find_spec("xllamacpp"), reason="xllamacpp is not installed")
def test_a_small_model_labels_headlines_and_describes_labels(tmp_path):
    server = serve(Path(MODEL), n_threads=1)
    url = f"{server.listening_address}/v1"
    adviser = OpenAIAdviser(url, "small", timeout=900, cache=tmp_path)
    interview, texts = Interview(adviser, 20), [text for text, _ in HEADLINES]
    answers = interview.ask([ask_for_label(LABELS, text) for text in texts])
    right = [answer == label for answer, (_, label) in zip(answers, HEADLINES, strict=True)]
    assert sum(right) >= 5
    [phrases] = interview.ask([ask_for_phrases(LABELS, LABELS.labels[0], texts[:4])])
    assert len(phrases) >= 2
    assert interview.unusable == 0
