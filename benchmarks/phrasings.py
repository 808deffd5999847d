"""Alternative label names of the four datasets, good and bad ones.

Those of AG News, DBpedia and Yahoo Answers are the choices of the paper's appendix on label noise.
The paper has none for 20 Newsgroups; its names are followed by a plain name, the words of the
group's own name, and a vague name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reproduction.names import ALTERNATIVES

CHOICES: dict[str, tuple[tuple[str, ...], ...]] = {
    "AG News": ALTERNATIVES["agnews"],
    "DBpedia": ALTERNATIVES["dbpedia14"],
    "Yahoo Answers": ALTERNATIVES["yahoo"],
    "20 Newsgroups": (
        (
            "atheist christian atheism god islamic",
            "atheism",
            "alt atheism",
            "people without faith",
        ),
        ("graphics image gif animation tiff", "computer graphics", "comp graphics", "pictures"),
        (
            "windows dos microsoft ms driver drivers card printer",
            "microsoft windows",
            "comp os ms-windows misc",
            "operating system",
        ),
        (
            "bus pc motherboard bios board computer dos",
            "pc hardware",
            "comp sys ibm pc hardware",
            "computer parts",
        ),
        ("mac apple powerbook", "apple macintosh", "comp sys mac hardware", "mac"),
        ("window motif xterm sun windows", "x window system", "comp windows x", "unix desktop"),
        (
            "sale offer shipping forsale sell price brand obo",
            "for sale",
            "misc forsale",
            "market",
        ),
        ("car ford auto toyota honda nissan bmw", "cars", "rec autos", "driving"),
        ("bike motorcycle yamaha", "motorcycles", "rec motorcycles", "riding"),
        ("baseball ball hitter", "baseball", "rec sport baseball", "pitchers and batters"),
        ("hockey wings espn", "ice hockey", "rec sport hockey", "winter sport"),
        ("encryption key crypto algorithm security", "cryptography", "sci crypt", "secrets"),
        ("circuit electronics radio signal battery", "electronics", "sci electronics", "gadgets"),
        ("doctor medical disease medicine patient", "medicine", "sci med", "health"),
        ("space orbit moon earth sky solar", "space", "sci space", "astronomy"),
        (
            "christian god christ church bible jesus",
            "christianity",
            "soc religion christian",
            "church",
        ),
        ("gun fbi guns weapon compound", "guns", "talk politics guns", "weapons"),
        (
            "israel arab jews jewish muslim",
            "middle east",
            "talk politics mideast",
            "foreign politics",
        ),
        ("gay homosexual sexual", "politics", "talk politics misc", "society"),
        (
            "christian morality jesus god religion horus",
            "religion",
            "talk religion misc",
            "belief",
        ),
    ),
}

# Sets that are always included: the index of the choice for each label.
_FIXED: dict[str, tuple[tuple[int, ...], ...]] = {
    "AG News": ((3, 1, 2, 1),),
    "DBpedia": (
        (0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2),
        (1, 1, 1, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1, 3),
    ),
    "Yahoo Answers": ((1,) * 10,),
    "20 Newsgroups": ((1,) * 20, (2,) * 20, (3,) * 20),
}

UNFITTING = ("miscellaneous", "general", "things", "blue", "other topics", "yesterday")


def ten_phrasings(dataset: str, usual: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Ten different sets of names for the labels of a dataset, none of them the usual one."""
    choices, random = CHOICES[dataset], np.random.default_rng(11)
    sets = [_named(choices, places) for places in _FIXED[dataset]]
    while len(sets) < 10:
        names = _named(choices, [int(random.integers(len(each))) for each in choices])
        if names not in sets and names != usual:
            sets.append(names)
    return sets


def _named(choices: tuple[tuple[str, ...], ...], places: Sequence[int]) -> tuple[str, ...]:
    return tuple(each[place] for each, place in zip(choices, places, strict=True))
