"""Asking a language model behind a server that misbehaves."""

import copy
import pickle

import pytest

from ulr.advisers import Interview, OpenAIAdviser, ask_for_label
from ulr.errors import AdviserError
from ulr.labels import as_label_set

LABELS = as_label_set(["sports", "business"])
GOAL = ask_for_label(LABELS, "A late goal")


@pytest.fixture
def adviser(server, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    return OpenAIAdviser(server.url, "tiny", timeout=0.3, retries=1, cache=tmp_path)


def one_answer(adviser):
    return Interview(adviser, 10).ask([GOAL])[0]


def test_what_is_sent_where_is_said_once_and_the_key_never(adviser, server, capfd, tmp_path):
    assert Interview(adviser, 10).ask([GOAL, ask_for_label(LABELS, "Bank shares")]) == [0, 1]
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert f"sent to {server.url} (model tiny)" in said
    assert server.keys == ["Bearer secret-key"] * 2
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for shown in (said, repr(adviser), pickle.dumps(adviser).decode("latin"), kept.decode("latin")):
        assert "secret-key" not in shown
    assert b"late goal" not in kept


@pytest.mark.parametrize("fault", ["slow", "cut off", 500, "retry after"])
def test_a_request_that_fails_is_repeated(adviser, server, fault):
    server.faults = [fault]
    assert one_answer(adviser) == 0
    assert len(server.requests) == 2


def test_a_response_that_is_no_answer_is_counted_and_not_kept(adviser, server):
    server.faults = ["not json"]
    interview = Interview(adviser, 10)
    assert interview.ask([GOAL]) == [None]
    assert interview.unusable == 1
    assert one_answer(adviser) == 0


@pytest.mark.parametrize("answer", ["", "I cannot say.", '{"label": "politics"}'])
def test_an_answer_that_cannot_be_used_is_not_paid_for_again(adviser, server, answer):
    server.answer = lambda prompt: answer
    again = OpenAIAdviser(server.url, "tiny", cache=adviser.cache)
    assert [one_answer(adviser), one_answer(again)] == [None, None]
    assert (len(server.requests), again.remembered) == (1, 1)


def test_an_answer_that_was_cut_off_is_not_used_and_not_paid_for_again(adviser, server):
    server.faults = ["too long"]
    assert [one_answer(adviser), one_answer(adviser)] == [None, None]
    assert (len(server.requests), adviser.remembered) == (1, 1)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "sports",
        '{"label": "politics"}',
        '{"label": 3}',
        '{"name": "sports"}',
        "[1]",
        '{"label": ',
    ],
)
def test_answers_that_name_no_label_are_not_used(server, adviser, answer):
    server.answer = lambda prompt: answer
    assert one_answer(adviser) is None


@pytest.mark.parametrize(
    "answer",
    [
        'Sure!\n```json\n{"label": " Sports "}\n```',
        '<think>Shares would be {"label": "business"}, a set {goal}.</think>{"label": "sports"}',
        'Either {"label": "business"} or, since of a goal, {"label": "sports"}. {Done}',
    ],
    ids=["fence", "thinking", "last object"],
)
def test_an_answer_may_stand_after_other_text_and_in_another_case(server, adviser, answer):
    server.answer = lambda prompt: answer
    assert one_answer(adviser) == 0


def test_a_server_without_structured_output_is_asked_plainly(adviser, server):
    server.structured = False
    assert one_answer(adviser) == 0
    assert Interview(adviser, 1).ask([ask_for_label(LABELS, "Bank shares")]) == [1]
    assert ["response_format" in each for each in server.requests] == [True, True, False, False]


def test_a_server_that_fails_again_and_again_is_given_up_and_answers_are_kept(adviser, server):
    assert one_answer(adviser) == 0
    server.faults = [500] * 100
    questions = [ask_for_label(LABELS, f"{number} goals") for number in range(9)]
    with pytest.raises(AdviserError, match=r"does not answer .*another run does not ask"):
        Interview(adviser, 10).ask([GOAL, *questions])
    assert len(server.requests) < 20
    again = OpenAIAdviser(server.url, "tiny", cache=adviser.cache)
    server.faults = []
    assert one_answer(again) == 0
    assert (again.sent, again.remembered) == (0, 1)


@pytest.mark.parametrize("n_before", [0, 250, 255, 290, 295])
def test_a_refused_key_is_named_but_not_shown(adviser, server, n_before):
    # Long messages are cut, and the cut may fall into the key.
    server.faults, server.message = [401], "x" * n_before + " secret-key " + "y" * 100
    with pytest.raises(AdviserError, match="OPENAI_API_KEY") as caught:
        one_answer(adviser)
    assert "xx" in str(caught.value) or not n_before
    assert "secre" not in str(caught.value)


def test_a_key_that_cannot_be_sent_is_named_but_not_shown(adviser, server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret-kéy")
    with pytest.raises(AdviserError, match="OPENAI_API_KEY") as caught:
        one_answer(adviser)
    assert "secret" not in str(caught.value)
    assert server.requests == []


def test_nobody_listens(tmp_path):
    adviser = OpenAIAdviser("http://user:pass@127.0.0.1:9/v1", "tiny", retries=0, cache=tmp_path)
    with pytest.raises(AdviserError, match=r"at http://127.0.0.1:9/v1 does not answer"):
        Interview(adviser, 10).ask([GOAL, GOAL, GOAL])


def test_a_dry_run_sends_nothing(server, tmp_path):
    adviser = OpenAIAdviser(server.url, "tiny", cache=tmp_path, dry_run=True)
    assert one_answer(adviser) is None
    assert (adviser.sent, server.requests) == (1, [])
    assert adviser.prompt_tokens > 20


def test_no_more_is_asked_than_the_budget(adviser, server):
    interview = Interview(adviser, 1)
    assert interview.ask([GOAL, ask_for_label(LABELS, "Bank shares")]) == [0, None]
    assert (interview.left, len(server.requests)) == (0, 1)


def test_an_adviser_can_be_copied(adviser):
    other = copy.deepcopy(adviser)
    assert (other.url, other.model, other.cache) == (adviser.url, adviser.model, adviser.cache)
    assert one_answer(other) == 0


@pytest.mark.parametrize(
    ("url", "model", "match"), [("localhost:1", "m", "begin with http"), ("http://a", " ", "name")]
)
def test_addresses_and_names_are_checked(url, model, match):
    with pytest.raises(AdviserError, match=match):
        OpenAIAdviser(url, model)


def test_a_damaged_cache_is_named(tmp_path):
    (tmp_path / "answers.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(AdviserError, match=r"answers.sqlite cannot be used.*Remove it"):
        one_answer(OpenAIAdviser("http://127.0.0.1:9", "tiny", cache=tmp_path))


def test_a_function_must_return_a_text():
    with pytest.raises(AdviserError, match="must return a text; got int"):
        one_answer(lambda prompt: 3)
