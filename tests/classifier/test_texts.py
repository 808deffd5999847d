"""Texts in the forms that users have them, and warnings about texts and labels."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tiny_task import LABELS, NEW, TEXTS, StaticVectors, assert_same
from ulr import ZeroShotClassifier
from ulr.classifier import as_texts, empty_texts
from ulr.classifier.texts import language_note
from ulr.errors import TextError

KINDS = {
    "iterator": iter,
    "array": np.array,
    "column of an array": lambda texts: np.array(texts)[:, None],
    "Series with an index": lambda texts: pd.Series(texts, index=range(len(texts), 0, -1)),
    "string Series": lambda texts: pd.Series(texts, dtype="string"),
    "category Series": lambda texts: pd.Series(texts, dtype="category"),
    "DataFrame": lambda texts: pd.DataFrame({"text": texts}),
    "polars Series": pl.Series,
    "polars DataFrame": lambda texts: pl.DataFrame({"text": texts}),
    "pyarrow array": pa.array,
    "pyarrow dictionary": lambda texts: pa.array(texts).dictionary_encode(),
    "pyarrow chunked array": lambda texts: pa.chunked_array([texts[:3], texts[3:]]),
    "pyarrow table": lambda texts: pa.table({"text": texts}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_form_of_texts_gives_the_same(kind):
    assert as_texts(KINDS[kind](TEXTS)) == TEXTS
    assert all(type(text) is str for text in as_texts(KINDS[kind](TEXTS)))


@pytest.mark.parametrize("kind", ["DataFrame", "polars Series", "pyarrow chunked array"])
def test_a_classifier_takes_every_form(kind):
    plain = ZeroShotClassifier(LABELS, encoder=StaticVectors()).fit(TEXTS)
    classifier = ZeroShotClassifier(LABELS, encoder=StaticVectors()).fit(KINDS[kind](TEXTS))
    assert_same(classifier, plain)
    assert classifier.predict(KINDS[kind](NEW * 2)).tolist() == LABELS * 2


@pytest.mark.parametrize(
    "texts",
    [
        ["a", None, float("nan"), pd.NA],
        np.array(["a", None, np.nan, ""], dtype=object),
        pd.Series(["a", None, None, None], dtype="string"),
        pl.Series(["a", None, None, None]),
        pa.array(["a", None, None, None]),
    ],
)
def test_missing_texts_are_empty_texts_like_blanks(texts):
    assert as_texts(texts) == ["a", "", "", ""]
    assert empty_texts(["a", " . ", "", " \n\t\u3000"]).tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", "texts must be a list of texts; got one text. Put it in a list."),
        (5, "texts must be a list of texts; got int."),
        ([], "there are no texts; at least one is needed."),
        (["a", 5], "texts must be strings; number 1 is 5."),
        (["a", b"b"], "texts must be strings; number 1 is b'b'."),
        (["a", ["b"]], "texts must be strings; number 1 is"),
        (np.array(["a", "b"]).reshape(1, 2), "texts must be one column of texts; got shape (1, 2)"),
        (np.array("a"), "texts must be one column of texts; got shape ()"),
        (pd.DataFrame({"a": ["x"], "b": ["y"]}), "got shape (1, 2)"),
        (pl.DataFrame({"a": ["x"], "b": ["y"]}), "got shape (1, 2)"),
        (pl.Series([1, 2]), "texts must be strings; number 0 is 1."),
        (["a", "x" * 10**6, 10**5000], "texts must be strings; number 2 is a value of type int"),
    ],
)
def test_anything_but_texts_is_refused(texts, message):
    with pytest.raises(TextError, match=re.escape(message)) as refused:
        as_texts(texts)
    assert len(str(refused.value)) < 200


# Warnings


LANGUAGES = {
    "de": "Ich war mit der Lieferung nicht zufrieden und das Paket ist auf dem Weg beschädigt worden",
    "fr": "Je ne suis pas content de la livraison et les cartons sont dans un état que vous savez",
    "es": "El paquete está roto y los cables del equipo, pero lo más grave es como las cajas llegan",
    "nl": "Ik ben niet tevreden want het pakket is een week te laat en ook de doos voor mijn kind",
    "pl": "Nie mam pojęcia czy paczka jest w drodze, ale na stronie się nie zmienia przez tydzień",
    "sv": "Jag är inte nöjd med det paket som har kommit och en del av innehållet är på fel plats",
}


MIXED = [LANGUAGES["de"], LANGUAGES["es"], "A parcel here: the box is late and it was open"] * 5
RUSSIAN = ["Доставка опоздала на неделю, и коробка была повреждена при перевозке"] * 8


@pytest.mark.parametrize(
    ("texts", "languages", "message"),
    [
        *[
            ([text] * 5, ["en"], f"look like the language {name!r}")
            for name, text in LANGUAGES.items()
        ],
        *[([text] * 5, ["en", name], None) for name, text in LANGUAGES.items()],
        *[([text] * 5, None, None) for text in LANGUAGES.values()],
        *[([text] * 5, [name], None) for name, text in LANGUAGES.items()],
        (MIXED, ["en"], "67% of the texts look like the languages 'de', 'es'"),
        (MIXED, ["en", "de"], "33% of the texts look like the language 'es'"),
        (RUSSIAN, ["en"], "not in Latin script"),
        (RUSSIAN, ["en", "ru"], None),
        (["The parcel was late and the box is not what I have ordered from you"] * 9, ["en"], None),
        (["goal striker cup", "bank shares profit", "telescope planet"] * 20, ["en"], None),
        (["The café in São Paulo is open, and the señor knows it"] * 9, ["en"], None),
        ([LANGUAGES["de"], *[MIXED[2]] * 3] * 5, ["en"], None),
        ([LANGUAGES["de"]], ["en"], None),  # too few words
        ([""] * 100, ["en"], None),
    ],
)
def test_languages_that_the_encoder_was_not_made_for_are_reported(texts, languages, message):
    found = language_note(texts, languages)
    assert found is None if message is None else message in found
