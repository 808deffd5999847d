"""The label names of the paper, word for word.

All come from the paper's appendix, except for those of Table 1, which the table itself prints. A set
of names is a tuple with one phrase per label, in the official order of the dataset's labels.
"""

from __future__ import annotations

from itertools import product

from reproduction.datasets import DATASETS
from ulr.labels import NAMED_LISTS, LabelSet, as_label_set

Names = tuple[str, ...]

AUGMENTED_CATEGORIES: Names = NAMED_LISTS["stackexchange"]


def _names(line: str) -> Names:
    """A set of names as the paper prints it: one line, separated by semicolons."""
    return tuple(name.strip() for name in line.split(";"))


def _sets(lines: str) -> tuple[Names, ...]:
    return tuple(_names(line) for line in lines.strip().splitlines())


def _changed(names: Names, *changes: dict[str, str]) -> tuple[Names, ...]:
    """One set per change: the given names with some of them replaced."""
    return tuple(tuple(change.get(name, name) for name in names) for change in changes)


# Appendix, "Label names in the evaluation tasks": the names of the main experiments.
MAIN_NAMES: dict[str, Names] = {
    "agnews": _names("world; sports; business; science technology"),
    "dbpedia14": _names(
        "company; educational institution; artist; athlete; politician; transportation; building; "
        "nature; village; animal; plant; album; film; written work"
    ),
    "yahoo": _names(
        "society culture; science mathematics; health; education reference; computers internet; "
        "sports; business finance; entertainment music; family relationships; politics government"
    ),
    "20newsgroups": _names(
        "atheist christian atheism god islamic; graphics image gif animation tiff; "
        "windows dos microsoft ms driver drivers card printer; "
        "bus pc motherboard bios board computer dos; mac apple powerbook; "
        "window motif xterm sun windows; sale offer shipping forsale sell price brand obo; "
        "car ford auto toyota honda nissan bmw; bike motorcycle yamaha; baseball ball hitter; "
        "hockey wings espn; encryption key crypto algorithm security; "
        "circuit electronics radio signal battery; doctor medical disease medicine patient; "
        "space orbit moon earth sky solar; christian god christ church bible jesus; "
        "gun fbi guns weapon compound; israel arab jews jewish muslim; gay homosexual sexual; "
        "christian morality jesus god religion horus"
    ),
}

# Table 1: six choices of names for the labels of AG News, from left to right.
TABLE_1_NAMES: tuple[Names, ...] = _sets("""
world; sports; business; science technology
international; health; finance; technology
world politics; sports; business and finance; science and technology
world news; health; business; science and technology
world; health and sports; commerce; science technology
world news; sports; finance; science
""")

# Appendix, "Label ensemble": ten sets per dataset. The last two of AG News are equal in the paper.
ENSEMBLE_NAMES: dict[str, tuple[Names, ...]] = {
    "agnews": _sets("""
world; sports; business; science technology
international; sports; business; science technology
world; sports; business; science and technology
international; sports; business; science and technology
world; sports; business and finance; science technology
international; sports; business and finance; science technology
world; sports; business and finance; science and technology
international; sports; business and finance; science and technology
world politics; sports; business; science technology
world politics; sports; business; science technology
"""),
    "dbpedia14": _changed(
        MAIN_NAMES["dbpedia14"],
        {},
        {"educational institution": "school"},
        {"building": "architecture", "film": "movie"},
        {"written work": "novel"},
        {"written work": "article"},
        {"album": "collection", "film": "movie"},
        {"educational institution": "school", "building": "architecture", "film": "movie"},
        {"building": "architecture", "film": "movie", "written work": "novel"},
        {"educational institution": "school", "building": "architecture", "written work": "novel"},
        {"politician": "official", "film": "movie", "written work": "article"},
    ),
    "yahoo": _changed(
        MAIN_NAMES["yahoo"],
        {},
        {"science mathematics": "scientific discipline"},
        {"education reference": "learning teaching resource"},
        {"family relationships": "love home"},
        {"computers internet": "information technology"},
        {
            "science mathematics": "scientific discipline",
            "computers internet": "information technology",
        },
        {
            "education reference": "learning teaching resource",
            "computers internet": "information technology",
        },
        {"business finance": "commerce"},
        {"computers internet": "information technology", "business finance": "commerce"},
        {"education reference": "learning teaching resource", "business finance": "commerce"},
    ),
}

# Appendix, "Robustness to label noises": the choices for each label. They combine to 240, 4,096 and
# 1,024 sets. Table 6 counts 240 for AG News, but 3,867 (cosine) and 2,963 (L2) for DBpedia and
# 1,015 and 947 for Yahoo: fewer than all, without saying which were left out.
ALTERNATIVES: dict[str, tuple[Names, ...]] = {
    "agnews": _sets("""
world; world politics; world news; international; international news
sports; health; health and sports
business; commerce; finance; business and finance
science; technology; science and technology; science technology
"""),
    "dbpedia14": _sets("""
company; corporation
educational institution; school
artist; creator
athlete; sportsman
politician; official
transportation
building; architecture
nature
village; suburb
animal; living thing
plant
album; collection
film; movie
written work; writing; novel; article
"""),
    "yahoo": _sets("""
society culture; community
science mathematics; scientific discipline
health; fitness
education reference; learning teaching resource
computers internet; information technology
sports; athletics
business finance; commerce
entertainment music; fun songs
family relationships; love home
politics government; policy regime regulation
"""),
}


def all_phrasings(dataset: str) -> list[Names]:
    """Every combination of the alternative names of a dataset; the last label varies fastest."""
    return list(product(*ALTERNATIVES[dataset]))


def label_set(dataset: str) -> LabelSet:
    """The official labels of a dataset, with the main names as phrases."""
    return as_label_set(dict(zip(DATASETS[dataset].labels, MAIN_NAMES[dataset], strict=True)))
