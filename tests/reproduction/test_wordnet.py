"""Definitions from a WordNet database: the first sense of the right base form, or none."""

import pytest

from reproduction.datasets import ReproductionError
from reproduction.wordnet import WordNet, with_definitions

SPORT, STOCK, REAL_ESTATE = "an active diversion", "the capital of a corporation", "land and houses"
SCIENCE, TECHNOLOGY = "a branch of knowledge", "the application of knowledge"
SENSES = {
    "noun": {
        "sport": [f'{SPORT}; "she loves sport; it keeps her fit"', "a plant unlike its parents"],
        "stock": [STOCK],
        "stocks": ["a wooden frame that held a prisoner"],
        "science": [SCIENCE],
        "technology": [f'{TECHNOLOGY}: "the age of technology"'],
        "engineering": [TECHNOLOGY],
        "real": ["what there is"],
        "real_estate": [REAL_ESTATE],
        "mouse": ["a small rodent"],
        "run": ["a score in a game"],
        "glass": ["a brittle solid"],
    },
    "verb": {"run": ["move fast on foot"], "study": ["learn by reading"]},
    "adj": {"big": ["large"], "sports": ["of or for sport"]},
    "adv": {},
}
IRREGULAR = {"noun": "lice louse\nmice mouse\n", "verb": "ran run\n", "adj": "bigger big\n"}
ATTESTED = {"sport", "stock", "glass"}
LICENCE = "".join(f"  {number} Words of a licence.  \n" for number in range(1, 30))


@pytest.fixture
def folder(tmp_path):
    """A database of a few words, in WordNet's own format."""
    for part, senses in SENSES.items():
        data, index = LICENCE, LICENCE
        for lemma, glosses in senses.items():
            offsets = ""
            for gloss in glosses:
                offsets += f"{len(data):08} "
                data += f"{len(data):08} 04 {part[0]} 01 {lemma} 0 000 | {gloss}  \n"
            n = len(glosses)
            index += f"{lemma} {part[0]} {n} 2 @ ~ {n} {int(lemma in ATTESTED)} {offsets} \n"
        (tmp_path / f"data.{part}").write_text(data)
        (tmp_path / f"index.{part}").write_text(index)
    for part, forms in IRREGULAR.items():
        (tmp_path / f"{part}.exc").write_text(forms)
    return tmp_path


@pytest.fixture
def wordnet(folder, monkeypatch):
    monkeypatch.setenv("WNSEARCHDIR", str(folder))
    return WordNet.find()


@pytest.mark.parametrize(
    ("phrase", "definition"),
    [
        ("Sport", SPORT),
        ("engineering", TECHNOLOGY),
        ("run", "a score in a game"),  # nouns come first
        # Forms are brought back to their base, preferably one that occurs in texts.
        ("sports", SPORT),
        ("stocks", STOCK),
        ("glasses", "a brittle solid"),
        ("technologies", TECHNOLOGY),
        ("mice", "a small rodent"),
        ("ran", "move fast on foot"),
        ("studying", "learn by reading"),
        ("bigger", "large"),
        # Phrases are taken for their longest parts.
        ("Real  Estates", REAL_ESTATE),
        ("science technology", f"{SCIENCE}; {TECHNOLOGY}"),
        ("real estate xyzzy sports sport", f"{REAL_ESTATE}; {SPORT}"),
        ("", None),
        ("xyzzy 日本 \ud83d &", None),
    ],
)
def test_definition_is_the_first_sense_without_its_examples(wordnet, phrase, definition):
    assert wordnet.definition(phrase) == definition


def test_labels_get_the_definitions_that_no_other_label_has(wordnet):
    names = ["technology", "engineering", "sports", "日本"]
    found = with_definitions(names, wordnet)
    assert found == [["technology"], ["engineering"], ["sports", SPORT], ["日本"]]


def test_missing_and_damaged_files_are_named(wordnet, folder):
    index = folder / "index.noun"
    index.write_bytes(index.read_bytes().replace(b"science n 1 2 @ ~ 1 0", b"science n 1 ~"))
    with pytest.raises(ReproductionError, match=r"index\.noun of WordNet is damaged"):
        WordNet(folder).definition("science")
    data = folder / "data.noun"
    data.write_bytes(data.read_bytes()[5:])
    with pytest.raises(ReproductionError, match=r"data\.noun of WordNet is damaged"):
        WordNet(folder).definition("sport")
    data.unlink()
    with pytest.raises(ReproductionError, match=r"WordNet is not in .*; install it .*data\.noun"):
        WordNet.find()
