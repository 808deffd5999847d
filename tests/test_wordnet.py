"""Definitions out of a WordNet database: the right sense of the right form, or none."""

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
        ("  SPORT\n", SPORT),
        ("technology", TECHNOLOGY),
        ("engineering", TECHNOLOGY),
        ("business", BUSINESS),
        ("box", 'a container (as in "box of matches")'),
        ("café", "a place for coffee"),
    ],
)
def test_definition_is_the_first_sense_without_its_examples(wordnet, phrase, definition):
    assert wordnet.definition(phrase) == definition


def test_every_entry_is_found(wordnet):
    entries = {}
    for synsets in (NOUNS, VERBS, ADJECTIVES, ADVERBS):
        for lemmas, gloss in synsets:
            for lemma in lemmas:
                entries.setdefault(lemma, gloss)
    del entries["stocks"], entries["sports"]  # taken for forms of other words
    for lemma, gloss in entries.items():
        assert gloss.startswith(wordnet.definition(lemma)), lemma


def test_nouns_come_before_verbs(wordnet):
    assert wordnet.definition("run") == "a score in a game"
    assert wordnet.definition("study") == "learn by reading"
    assert wordnet.definition("fast") == "with speed"


@pytest.mark.parametrize(
    ("phrase", "definition"),
    [
        ("sports", SPORT),
        ("sciences", SCIENCE),
        ("boxes", 'a container (as in "box of matches")'),
        ("glasses", "a brittle solid"),
        ("technologies", TECHNOLOGY),
        ("mice", "a small rodent"),
        ("ran", "move fast on foot"),
        ("studying", "learn by reading"),
        ("studies", "learn by reading"),
        ("studied", None),
        ("bigger", "large"),
        ("biggest", None),
        ("glas", None),
        ("s", None),
    ],
)
def test_forms_are_brought_back_to_their_base(wordnet, phrase, definition):
    assert wordnet.definition(phrase) == definition


def test_form_that_is_never_met_as_itself_is_a_form(wordnet):
    assert wordnet.definition("stocks") == STOCK


@pytest.mark.parametrize("phrase", ["real estate", "Real  Estates", "real-estate", "real_estate"])
def test_words_that_make_up_an_entry_are_one(wordnet, phrase):
    assert wordnet.definition(phrase) == REAL_ESTATE


def test_hyphens_may_be_there_or_not(wordnet):
    assert wordnet.definition("merry go round") == "a machine to ride on"
    assert wordnet.definition("wild-life") == "animals that are not tame"


@pytest.mark.parametrize(
    ("phrase", "definition"),
    [
        ("science and technology", f"{SCIENCE}; {TECHNOLOGY}"),
        ("science technology", f"{SCIENCE}; {TECHNOLOGY}"),
        ("Science & Technology", f"{SCIENCE}; {TECHNOLOGY}"),
        ("science/technology", f"{SCIENCE}; {TECHNOLOGY}"),
        ("business, finance (stocks)", f"{BUSINESS}; {FINANCE}; {STOCK}"),
        ("real estate business", f"{REAL_ESTATE}; {BUSINESS}"),
        ("the business of real estate", f"{BUSINESS}; {REAL_ESTATE}"),
        ("sport or science", f"{SPORT}; {SCIENCE}"),
        ("sports, sport", SPORT),
        ("quantum science", SCIENCE),
    ],
)
def test_other_phrases_are_taken_for_their_parts(wordnet, phrase, definition):
    assert wordnet.definition(phrase) == definition


@pytest.mark.parametrize("phrase", ["", " ", "xyzzy", "of the", "日本", "\ud83d", "&", "zzz", "!"])
def test_what_is_not_known_has_no_definition(wordnet, phrase):
    assert wordnet.definition(phrase) is None


def test_exceptions_may_be_missing(folder):
    (folder / "noun.exc").unlink()
    wordnet = WordNet(folder)
    assert wordnet.definition("mice") is None
    assert wordnet.definition("sports") == SPORT


def test_index_may_lack_its_last_line_end(folder):
    index = folder / "index.noun"
    index.write_bytes(index.read_bytes().rstrip())
    assert WordNet(folder).definition("wildlife") == "animals that are not tame"


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A machine without WordNet."""
    for name in ("WNSEARCHDIR", "WNHOME", "NLTK_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("ulr.wordnet._PLACES", ())
    monkeypatch.setattr("ulr.wordnet._NLTK_PLACES", ())
    return monkeypatch


def test_machine_without_wordnet_is_told_how_to_get_it(nowhere):
    with pytest.raises(LabelError, match=r"WordNet is not installed; .*apt install wordnet-base"):
        WordNet.find()
    nowhere.setenv("WNSEARCHDIR", "no/such/folder")
    with pytest.raises(LabelError, match=r"set the variable WNSEARCHDIR to the folder"):
        WordNet.find()


def test_variables_say_where_it_is(nowhere, folder):
    nowhere.setenv("WNHOME", str(folder.parent))
    assert WordNet.find().folder == folder
    nowhere.delenv("WNHOME")
    nowhere.setenv("WNSEARCHDIR", str(folder))
    assert WordNet.find().folder == folder


@pytest.mark.parametrize("variable", ["HOME", "NLTK_DATA"])
def test_data_of_nltk_is_found(nowhere, folder, tmp_path, variable):
    place = tmp_path / "nltk_data" / "corpora" / "wordnet"
    place.parent.mkdir(parents=True)
    folder.rename(place)
    nowhere.setenv(variable, str(tmp_path if variable == "HOME" else tmp_path / "nltk_data"))
    assert WordNet.find().folder == place


def test_folder_that_lacks_files_is_refused(folder, tmp_path):
    (folder / "data.verb").unlink()
    with pytest.raises(LabelError, match=r"dict is no WordNet database: it has no data\.verb;"):
        WordNet.find(folder)
    with pytest.raises(LabelError, match=r"it has no index\.noun, data\.noun, index\.verb"):
        WordNet(tmp_path)


def test_damaged_database_is_told(folder):
    index = folder / "index.noun"
    index.write_bytes(index.read_bytes().replace(b"science n 1 2 @ ~ 1 0", b"science n 1 ~"))
    with pytest.raises(LabelError, match=r"index\.noun does not hold .* 'science'; .* again\."):
        WordNet(folder).definition("science")
    data = folder / "data.noun"
    data.write_bytes(data.read_bytes()[5:])
    with pytest.raises(LabelError, match=r"data\.noun does not hold .* for 'sport'; .*damaged"):
        WordNet(folder).definition("sport")
    data.write_bytes(b"")
    with pytest.raises(LabelError, match=r"data\.noun of WordNet cannot be read: .*empty"):
        WordNet(folder)


def test_every_label_gets_the_definitions_of_its_phrases(wordnet):
    labels = as_label_set({"sports": ["sports", "running race"], "money": ["business", "finance"]})
    expansion = expand_labels(labels, wordnet)
    assert expansion.without == ()
    assert tuple(expansion.labels) == (
        Label("sports", ("sports", "running race", SPORT)),
        Label("money", ("business", "finance", BUSINESS, FINANCE)),
    )


def test_label_without_a_definition_keeps_its_phrases_and_is_told(wordnet):
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


def test_definition_that_is_a_phrase_already_is_not_added(wordnet):
    labels = as_label_set({"a": [SPORT, "science"], "b": "sport"})
    expansion = expand_labels(labels, wordnet)
    assert SPORT not in expansion.labels.labels[1].phrases
    assert expansion.without == ("b",)


def test_phrases_of_one_label_that_mean_the_same_get_one_definition(wordnet):
    labels = as_label_set({"a": ["sport", "sports"], "b": "science"})
    assert expand_labels(labels, wordnet).labels.phrases()[0] == ["sport", "sports", SPORT]


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
        ("children", "young"),
        ("business & finance", "enterprise.*; .*funds"),
        ("science and technology", "scientific.*; .*application"),
    ],
)
def test_installed_wordnet_knows_usual_labels(installed, phrase, words):
    definition = installed.definition(phrase)
    assert re.search(words, definition)
    assert '"' not in definition


def test_installed_wordnet_gives_every_entry_a_definition(installed):
    lines = (installed.folder / "index.noun").read_bytes().splitlines()
    lemmas = [line.split()[0].decode() for line in lines if not line.startswith(b" ")]
    for lemma in lemmas[::997]:
        assert installed.definition(lemma.replace("_", " ")), lemma
