"""What an adviser does to a fit, in the class and on the command line."""

import json
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tiny_task import LABELS, StaticVectors, generated_texts
from topics import TOPICS, answer_well
from ulr import ZeroShotClassifier
from ulr.advisers import OpenAIAdviser
from ulr.errors import UlrError


def documents(n=240):
    """Documents of three words of a topic and some of all topics; every fifth is hard to tell."""
    draw, texts, truth = random.Random(0), [], []
    every = " ".join(TOPICS.values()).split()
    for number in range(n):
        topic = draw.choice(list(TOPICS))
        words = draw.choices(TOPICS[topic].split(), k=2 if number % 5 else 1)
        texts.append(" ".join([*words, *words, draw.choice(every), f"no{number}"]))
        truth.append(topic)
    return texts, np.array(truth)


TEXTS, TRUTH = documents()


def fitted(word_vectors, adviser, labels=None, **parameters):
    labels = list(TOPICS) if labels is None else labels
    classifier = ZeroShotClassifier(
        labels, encoder=word_vectors, adviser=adviser, **parameters
    ).fit(TEXTS)
    return classifier, (classifier.fit_predict(TEXTS) == TRUTH).mean()


def test_a_good_adviser_helps_within_its_budget(word_vectors):
    alone = fitted(word_vectors, None)[1]
    prompts = []

    def adviser(prompt):
        prompts.append(prompt)
        return answer_well(prompt)

    classifier, advised = fitted(word_vectors, adviser, adviser_budget=100)
    advice = classifier.advice_
    assert advised > alone
    assert advice.questions == 100 == len(set(prompts))
    assert advice.examples > 40
    assert advice.accuracy > 0.8
    assert advice.judged == 32
    assert advice.interval[0] < advice.agreeing / 32 < advice.interval[1]


def test_an_adviser_that_agrees_less_than_expected_is_named(word_vectors):
    names = list(TOPICS)

    def adviser(prompt):
        found = json.loads(answer_well(prompt)).get("label")
        return json.dumps({"label": names[names.index(found) - 1]}) if found else "{}"

    advice = fitted(word_vectors, adviser)[0].advice_
    assert advice.interval[1] < advice.expected_accuracy
    assert "That is less than expected" in advice.sentences[-1]
    assert advice.examples == 0


@pytest.mark.parametrize(
    "answer",
    [
        lambda prompt: json.dumps({"label": random.Random(prompt).choice(list(TOPICS))}),
        lambda prompt: '{"label": "weather"}',
        lambda prompt: "I cannot say.",
    ],
    ids=["at random", "always the same", "nothing"],
)
def test_an_adviser_that_knows_nothing_changes_nothing(word_vectors, answer):
    classifier, advised = fitted(word_vectors, answer)
    assert (classifier.advice_.examples, classifier.advice_.changed) == (0, 0)
    assert advised == fitted(word_vectors, None)[1]


def test_phrases_are_kept_only_if_they_attract_their_own_label(word_vectors):
    def adviser(prompt):
        if 'Describe the category "sports"' in prompt:
            return '{"description": "", "phrases": ["team", "bank", "zzz", "Sports"]}'
        return answer_well(prompt) if "Document:" in prompt else "{}"

    classifier, _ = fitted(word_vectors, adviser)
    assert classifier.advice_.phrases == {"sports": ("team",)}
    assert classifier.advice_.dropped_phrases == 2
    assert classifier.fitted_.settings.label_set.phrases()[0] == ["sports", "team"]


class TwoTopics:
    """Vectors in which the phrase `trade` is nearest to sports, and draws documents on stocks there."""

    def __init__(self):
        self.words = {"sports": (1, 0, 0), "match": (1, 0.2, 0), "trade": (1, 0, 1)}
        self.words |= {"business": (0, 1, 0), "money": (0.2, 1, 0), "stocks": (0.2, 0.5, 1.5)}

    def encode(self, texts):
        vectors = []
        for text in texts:
            words = [
                self.words[word] for word in text.rstrip(".").lower().split() if word in self.words
            ]
            wobble = np.array([len(text) % 7, len(text) % 5, len(text) % 3]) / 50
            vectors.append(np.sum(words, axis=0) + wobble)
        return np.array(vectors)


@pytest.mark.parametrize("labels_well", [True, False])
def test_phrases_that_the_labels_of_random_documents_do_not_confirm_are_dropped(labels_well):
    topics = ("match", "money", "stocks")
    texts = [f"{topic} {'x' * (number % 7)}" for number in range(50) for topic in topics]

    def phrases(told):
        def adviser(prompt):
            if "Describe" in prompt:
                own = [told] if 'category "sports"' in prompt else []
                return json.dumps({"description": "", "phrases": own})
            is_match = "match " in prompt if labels_well else True
            return json.dumps({"label": "sports" if is_match else "business"})

        parameters = {"encoder": TwoTopics(), "method": "none", "adviser": adviser}
        advice = ZeroShotClassifier(["sports", "business"], **parameters).fit(texts).advice_
        assert advice.dropped_phrases == (not advice.phrases)
        return advice.phrases

    assert phrases("match") == ({"sports": ("match",)} if labels_well else {})
    assert phrases("trade") == {}


def test_phrases_of_the_user_are_not_replaced(word_vectors):
    labels = {
        "sports": ["striker", "goal"],
        "business": ["bank", "shares"],
        "weather": ["rain", "snow"],
    }
    classifier, _ = fitted(word_vectors, answer_well, labels)
    assert classifier.advice_.phrases == {}
    assert classifier.advice_.questions == 160


def test_random_documents_that_judge_are_no_examples(word_vectors):
    classifier, _ = fitted(word_vectors, answer_well)
    advice = classifier.advice_
    assert advice.judged + advice.answers == 157
    assert (classifier.fitted_.known >= 0).sum() == advice.examples <= advice.answers


def test_the_adviser_is_not_saved(word_vectors, server, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    adviser = OpenAIAdviser(server.url, "tiny", cache=tmp_path / "cache")
    classifier, _ = fitted(word_vectors, adviser, adviser_budget=30)
    classifier.save(tmp_path / "model")
    kept = b"".join(file.read_bytes() for file in (tmp_path / "model").iterdir())
    assert b"secret-key" not in kept
    assert server.url.encode() not in kept
    loaded = ZeroShotClassifier.load(tmp_path / "model", encoder=word_vectors)
    assert loaded.adviser is None
    assert (loaded.predict(TEXTS) == classifier.predict(TEXTS)).all()


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"adviser": "http://localhost"}, "adviser must be an OpenAIAdviser"),
        ({"adviser_budget": 0}, "adviser_budget must be an integer"),
    ],
)
def test_parameters_are_checked(word_vectors, parameters, match):
    with pytest.raises(UlrError, match=match):
        ZeroShotClassifier(["a", "b"], encoder=word_vectors, **parameters).fit(TEXTS)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "texts.jsonl"
    rows = zip(TEXTS, TRUTH.tolist(), strict=True)
    path.write_text("".join(json.dumps({"text": t, "topic": y}) + "\n" for t, y in rows))
    return path


def test_the_command_line_says_what_was_asked_and_what_it_changed(
    command, server, table, tmp_path, word_vectors
):
    model = ["--llm", server.url, "--llm-model", "tiny", "--llm-budget", 60]
    task = [table, "-t", "text", "-l", ",".join(TOPICS), "--encoder", word_vectors]
    task += ["--cache", tmp_path / "cache", *model]
    plan = command("classify", *task, "-o", tmp_path / "out.csv", "--llm-dry-run", "--json")
    assert json.loads(plan.out)["questions"] == 60
    assert server.requests == []
    assert not (tmp_path / "out.csv").exists()
    result = command("evaluate", *task, "--truth", "topic", "--json")
    assert result.code == 0, result.err
    assert f"sent to {server.url}" in result.err
    advice = json.loads(result.out)["advice"]
    assert (advice["questions"], advice["remembered"], advice["adviser"]) == (60, 0, "tiny")
    assert len(server.requests) == 60
    again = command("report", *task, "-o", tmp_path / "report.html")
    assert "tiny was asked 60 questions, 60 of them in an earlier run" in again.out
    assert "random documents" in again.out
    assert len(server.requests) == 60
    assert "sent to" not in again.err


def test_stopped_during_a_question_ends_at_once_and_keeps_the_answers(
    server, table, word_vectors, tmp_path
):
    task = [table, "-t", "text", "-l", ",".join(TOPICS), "--encoder", word_vectors]
    task += ["--llm", server.url, "--llm-model", "tiny", "--cache", tmp_path / "cache"]
    arguments = [sys.executable, "-m", "ulr", "classify", *map(str, task), "-o", tmp_path / "o.csv"]
    server.faults, server.delay = [None] * 20 + ["slow"] * 100, 30.0
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            while len(server.requests) < 24 and process.poll() is None:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            errors = process.communicate(timeout=20)[1].decode()
        finally:
            process.kill()
    assert process.returncode == 130
    assert errors.endswith("ulr: stopped; no file was written.\n")
    assert "Traceback" not in errors
    assert not (tmp_path / "o.csv").exists()
    assert len(server.requests) == 24
    adviser = OpenAIAdviser(server.url, "tiny", cache=tmp_path / "cache", dry_run=True)
    advice = fitted(word_vectors, adviser)[0].advice_
    assert advice.remembered == 20


def test_without_the_option_nothing_is_sent(command, server, table, word_vectors, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    task = [table, "-t", "text", "-l", ",".join(TOPICS), "--encoder", word_vectors]
    result = command("classify", *task, "--json")
    assert json.loads(result.out)["advice"] is None
    assert server.requests == []


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--llm", "localhost:11434", "--llm-model", "m"], "must begin with http"),
        (["--llm", "http://[::1/v1", "--llm-model", "m"], "must begin with http"),
        (["--llm", "http://localhost:11434/v1"], "add --llm-model"),
        (
            ["--llm", "http://a", "--llm-model", "m", "--cluster", "local", "-o", "o/"],
            "one machine",
        ),
    ],
)
def test_options_are_checked(command, table, options, match):
    result = command("classify", table, "-t", "text", "-l", "a, b", *options)
    assert result.code == 1
    assert match in result.err


def test_groups_that_no_label_explains_get_the_name_of_the_adviser():
    def adviser(prompt):
        return '{"name": "Research"}' if "fit none of the categories" in prompt else ""

    labels, texts = LABELS[:-1], generated_texts(400, own=0.8)[0]
    classifier = ZeroShotClassifier(labels, encoder=StaticVectors(), adviser=adviser).fit(texts)
    first, *_ = classifier.suggest().missing
    assert first.advised_name == "Research"
    more = classifier.suggest().labels_with(classifier.label_set_)
    assert more.labels[len(labels)].phrases == ("Research", first.name)
