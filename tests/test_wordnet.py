"""Definitions from a WordNet database: the first sense of the right base form, or none."""

import re
from pathlib import Path

import pytest

from ulr.errors import LabelError
from ulr.labels import Label, as_label_set
from ulr.wordnet import WordNet, expand_labels

SPORT = "an active diversion requiring exertion"
STOCK = "the capital raised by a corporation"
STOCKS = "a wooden frame that held a prisoner"
SCIENCE = "a branch of knowledge"
TECHNOLOGY = "the practical application of knowledge"
BUSINESS = "an enterprise and its people; commerce"
FINANCE = "the providing of money"
REAL = "what there is"
REAL_ESTATE = "land and houses"
NOUNS = [
    (["sport"], f'{SPORT}; "she loves sport; it keeps her fit"; "a sport for all"'),
    (["sport"], "a plant that differs from its parents"),
    (["stock"], STOCK),
    (["stocks"], STOCKS),
    (["science"], SCIENCE),
    (["technology", "engineering"], f'{TECHNOLOGY}: "the age of technology"'),
    (["business"], BUSINESS),
    (["finance"], FINANCE),
    (["real"], REAL),
    (["real_estate"], REAL_ESTATE),
    (["merry-go-round"], "a machine to ride on"),
    (["wildlife"], "animals that are not tame"),
    (["mouse"], "a small rodent"),
    (["run"], "a score in a game"),
    (["box"], 'a container (as in "box of matches")'),
    (["glass"], "a brittle solid"),
    (["café"], "a place for coffee"),
    (["or"], "a state in the north-west"),
]
VERBS = [(["run"], "move fast on foot"), (["study"], "learn by reading")]
ADJECTIVES = [(["big"], "large"), (["sports"], "of or for sport")]
ADVERBS = [(["fast"], "with speed")]
ATTESTED = {"sport", "stock", "glass"}
LICENCE = "".join(f"  {number} Words of a licence.  \n" for number in range(1, 30))


def write_part(folder: Path, part: str, letter: str, synsets) -> None:
    """The data and the index of one part of speech, in WordNet's own format."""
    data, places = LICENCE.encode(), {}
    for lemmas, gloss in synsets:
        for lemma in lemmas:
            places.setdefault(lemma.lower(), []).append(len(data))
        words = " ".join(f"{lemma} 0" for lemma in lemmas)
        synset = f"{len(data):08} 04 {letter} {len(lemmas):02x} {words} 000 | {gloss}  \n"
        data += synset.encode()
    lines = []
    for lemma, own in places.items():
        n, attested = len(own), int(lemma in ATTESTED)
        offsets = " ".join(f"{place:08}" for place in own)
        lines.append(f"{lemma} {letter} {n} 2 @ ~ {n} {attested} {offsets}  \n".encode())
    (folder / f"data.{part}").write_bytes(data)
    (folder / f"index.{part}").write_bytes(LICENCE.encode() + b"".join(sorted(lines)))


@pytest.fixture
def folder(tmp_path):
    """A WordNet of a few words."""
    folder = tmp_path / "dict"
    folder.mkdir()
    write_part(folder, "noun", "n", NOUNS)
    write_part(folder, "verb", "v", VERBS)
    write_part(folder, "adj", "a", ADJECTIVES)
    write_part(folder, "adv", "r", ADVERBS)
    (folder / "noun.exc").write_text("lice louse\nmice mouse\noxen ox\n")
    (folder / "verb.exc").write_text("ran run\n")
    (folder / "adj.exc").write_text("bigger big\n")
    (folder / "adv.exc").write_text("")
    return folder


@pytest.fixture
def wordnet(folder):
    return WordNet.find(folder)


@pytest.mark.parametrize(
    ("phrase", "definition"),
    [
        ("sport", SPORT),
        ("Sport", SPORT),
        ("engineering", TECHNOLOGY),
        ("business", BUSINESS),
        ("box", 'a container (as in "box of matches")'),
        ("café", "a place for coffee"),
        ("run", "a score in a game"),  # nouns come first
        ("fast", "with speed"),
        ("merry go round", "a machine to ride on"),
        ("wild-life", "animals that are not tame"),
    ],
)
def test_definition_is_the_first_sense_without_its_examples(wordnet, phrase, definition):
    assert wordnet.definition(phrase) == definition


@pytest.mark.parametrize(
    ("phrase", "definition"),
    [
        ("sports", SPORT),
        ("sciences", SCIENCE),
        ("glasses", "a brittle solid"),
        ("technologies", TECHNOLOGY),
        ("mice", "a small rodent"),
        ("ran", "move fast on foot"),
        ("studying", "learn by reading"),
        ("studies", "learn by reading"),
        ("bigger", "large"),
    ],
)
def test_forms_are_brought_back_to_their_base(wordnet, phrase, definition):
    assert wordnet.definition(phrase) == definition


@pytest.mark.parametrize("phrase", ["real estate", "Real  Estates", "real-estate", "real_estate"])
def test_words_that_make_up_an_entry_are_one(wordnet, phrase):
    assert wordnet.definition(phrase) == REAL_ESTATE


@pytest.mark.parametrize(
    ("phrase", "definition"),
    [
        ("science and technology", f"{SCIENCE}; {TECHNOLOGY}"),
        ("science technology", f"{SCIENCE}; {TECHNOLOGY}"),
        ("business, finance (stocks)", f"{BUSINESS}; {FINANCE}; {STOCK}"),
        ("real estate business", f"{REAL_ESTATE}; {BUSINESS}"),
        ("the business of real estate", f"{BUSINESS}; {REAL_ESTATE}"),
        ("sport or science", f"{SPORT}; {SCIENCE}"),
    ],
)
def test_other_phrases_are_taken_for_their_parts(wordnet, phrase, definition):
    assert wordnet.definition(phrase) == definition


@pytest.mark.parametrize("phrase", ["", " ", "xyzzy", "of the", "日本", "\ud83d", "&", "zzz", "!"])
def test_an_unknown_phrase_has_no_definition(wordnet, phrase):
    assert wordnet.definition(phrase) is None


def test_the_folder_may_be_set_in_the_environment(monkeypatch, folder):
    monkeypatch.setenv("WNSEARCHDIR", str(folder))
    assert WordNet.find().folder == folder


def test_folder_without_its_files_is_refused(folder):
    (folder / "data.verb").unlink()
    with pytest.raises(LabelError, match=r"not a WordNet database: it has no data\.verb;"):
        WordNet.find(folder)


def test_damaged_files_are_named(folder):
    index = folder / "index.noun"
    index.write_bytes(index.read_bytes().replace(b"science n 1 2 @ ~ 1 0", b"science n 1 ~"))
    with pytest.raises(LabelError, match=r"index\.noun of WordNet is damaged"):
        WordNet(folder).definition("science")
    data = folder / "data.noun"
    data.write_bytes(data.read_bytes()[5:])
    with pytest.raises(LabelError, match=r"data\.noun of WordNet is damaged"):
        WordNet(folder).definition("sport")


def test_every_label_gets_the_definitions_of_its_phrases(wordnet):
    labels = as_label_set({"sports": ["sports", "running race"], "money": ["business", "finance"]})
    expansion = expand_labels(labels, wordnet)
    assert expansion.without == ()
    assert tuple(expansion.labels) == (
        Label("sports", ("sports", "running race", SPORT)),
        Label("money", ("business", "finance", BUSINESS, FINANCE)),
    )


def test_label_without_a_definition_keeps_its_phrases_and_is_reported(wordnet):
    labels = as_label_set(["xyzzy", "sports", "日本"])
    expansion = expand_labels(labels, wordnet)
    assert expansion.without == ("xyzzy", "日本")
    assert expansion.labels.phrases() == [["xyzzy"], ["sports", SPORT], ["日本"]]


def test_definition_that_labels_would_share_is_given_to_none(wordnet):
    labels = as_label_set({"a": ["technology", "science"], "b": "engineering", "c": "finance"})
    expansion = expand_labels(labels, wordnet)
    assert expansion.labels.phrases() == [
        ["technology", "science", SCIENCE],
        ["engineering"],
        ["finance", FINANCE],
    ]
    assert expansion.without == ("b",)


@pytest.fixture(scope="module")
def installed():
    try:
        return WordNet.find()
    except LabelError:
        pytest.skip("WordNet is not installed")


@pytest.mark.parametrize(
    ("phrase", "words"),
    [
        ("sports", "physical exertion"),
        ("stocks", "corporation"),
        ("real estate", "houses"),
        ("science and technology", "scientific.*; .*application"),
    ],
)
def test_installed_wordnet_knows_usual_labels(installed, phrase, words):
    definition = installed.definition(phrase)
    assert re.search(words, definition)
    assert '"' not in definition
