"""The classifier: scikit-learn's rules, what it learns, whom it refuses, and what it saves."""

import json
import os
import pickle
import re
import subprocess
import sys
import zlib
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from safetensors.numpy import save_file
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks

from ulr import DatalessClassifier, load_encoder, refine
from ulr.anchors import label_vectors
from ulr.errors import ArrayError, EncoderError, LabelError, ModelError, TextError
from ulr.files import sha256
from ulr.labels import as_label_set
from ulr.refine import refine_ensemble
from ulr.refine.calibration import typical_lead
from ulr.tasks import as_texts
from ulr.wordings import Wordings

LABELS = ["sports", "business", "science and technology"]
TEXTS = [
    "The striker scored twice before half time",
    "Shares fell on Monday after the bank raised its rates",
    "A late goal won the cup final",
    "Researchers trained a neural network on protein structures",
    "The company reported record profits this quarter",
    "The telescope found water on a distant planet",
    "Tennis champion retires after a knee injury",
    "Oil prices rose and investors sold bonds",
    "",
]
NEW = [
    "The coach praised the goalkeeper",
    "Quarterly revenue missed forecasts",
    "A new microscope for cells",
]


class HashingEncoder:
    """A vector a word, drawn from the word's own hash; a text is the sum of its words."""

    def __init__(self, n_dims=8):
        self.n_dims = n_dims

    def encode(self, texts):
        return np.array([self._vector(text) for text in texts])

    def _vector(self, text):
        draws = [np.random.default_rng(zlib.crc32(w.encode())) for w in text.split()]
        return sum((draw.standard_normal(self.n_dims) for draw in draws), np.zeros(self.n_dims))


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("static")


@pytest.fixture(scope="module")
def fitted(encoder):
    return DatalessClassifier(LABELS, encoder=encoder).fit(TEXTS)


def assert_same(one, other, texts=NEW):
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_array_equal(one.predict(texts), other.predict(texts))
    np.testing.assert_array_equal(one.predict_proba(texts), other.predict_proba(texts))


# scikit-learn's rules


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_estimator_tags_renamed,
        estimator_checks.check_estimators_unfitted,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_mixin_order,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_set_params,
        estimator_checks.check_valid_tag_types,
    ],
    ids=lambda check: check.__name__,
)
def test_estimator_checks_that_need_no_numbers_pass(check):
    check("DatalessClassifier", DatalessClassifier(LABELS, encoder=HashingEncoder()))


def test_tags_say_that_it_classifies_one_dimensional_texts():
    tags = DatalessClassifier(LABELS).__sklearn_tags__().input_tags
    assert is_classifier(DatalessClassifier(LABELS))
    assert (tags.string, tags.one_d_array, tags.two_d_array) == (True, True, False)


def test_arguments_are_stored_untouched():
    given = {
        "labels": {"b": ["x"], "a": None},
        "encoder": HashingEncoder(),
        "method": "none",
        "distance": "l2",
        "prior": "estimate",
        "template": "About {}",
        "wordings": "combinations",
        "sample": 9,
        "extra_labels": ["math"],
        "seed": 3,
        "max_iterations": np.int64(7),
        "threads": 1,
        "cache": None,
        "none_share": None,
        "none_label": "other",
    }
    classifier = DatalessClassifier(**given)
    found = classifier.get_params(deep=False)
    assert found.keys() == given.keys()
    assert all(found[name] is given[name] for name in given)
    classifier.fit(TEXTS)
    assert all(getattr(classifier, name) is given[name] for name in given)
    assert given["labels"] == {"b": ["x"], "a": None}


def test_clone_forgets_what_was_learned_and_learns_the_same(fitted):
    copy = clone(fitted)
    assert not hasattr(copy, "classes_")
    assert_same(copy.fit(TEXTS), fitted)


def test_fit_returns_itself_and_adds_only_learned_attributes(encoder):
    classifier = DatalessClassifier(LABELS, encoder=encoder)
    before = set(vars(classifier))
    assert classifier.fit(TEXTS) is classifier
    assert all(name.endswith("_") for name in set(vars(classifier)) - before)


def test_pickle_keeps_everything_but_the_weights(fitted):
    pickled = pickle.dumps(fitted)
    again = pickle.loads(pickled)
    assert len(pickled) < 100_000
    assert_same(again, fitted)
    np.testing.assert_array_equal(again.refinement_.scores, fitted.refinement_.scores)


@pytest.mark.parametrize(
    "use",
    [
        lambda c, path: c.predict(NEW),
        lambda c, path: c.predict_proba(NEW),
        lambda c, path: c.decision_function(NEW),
        lambda c, path: c.score(NEW, LABELS),
        lambda c, path: c.nearest(NEW),
        lambda c, path: c.probabilities(np.zeros((1, 3), dtype=np.float32)),
        lambda c, path: c.save(path),
    ],
)
def test_unfitted_use_is_refused(use, tmp_path):
    with pytest.raises(NotFittedError, match="DatalessClassifier instance is not fitted yet"):
        use(DatalessClassifier(LABELS), tmp_path / "model")
    assert not any(tmp_path.iterdir())


def test_refit_forgets(encoder):
    other = ["cooking", "gardening"]
    classifier = DatalessClassifier(other, encoder=encoder).fit(NEW, ["cooking", None, None])
    classifier.set_params(labels=LABELS).fit(TEXTS)
    fresh = DatalessClassifier(LABELS, encoder=encoder).fit(TEXTS)
    assert vars(classifier).keys() == vars(fresh).keys()
    assert_same(classifier, fresh)
    np.testing.assert_array_equal(classifier.centroids_, fresh.centroids_)


def test_failed_refit_keeps_what_was_learned(encoder):
    classifier = DatalessClassifier(LABELS, encoder=encoder).fit(TEXTS)
    before = classifier.predict_proba(NEW)
    with pytest.raises(TextError, match="number 1 is 5"):
        classifier.fit(["a", 5])
    np.testing.assert_array_equal(classifier.predict_proba(NEW), before)


def test_it_works_at_the_end_of_a_pipeline(encoder, fitted):
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = make_pipeline(lower, DatalessClassifier(LABELS, encoder=encoder)).fit(TEXTS)
    lowered = [text.lower() for text in TEXTS]
    assert_same(pipeline[-1], DatalessClassifier(LABELS, encoder=encoder).fit(lowered))
    assert pipeline.predict(NEW).tolist() == LABELS


# What it learns


def test_the_default_needs_only_labels():
    classifier = DatalessClassifier(LABELS).fit(TEXTS)
    assert classifier.predict(NEW).tolist() == LABELS
    assert classifier.score(NEW, LABELS) == 1.0


@pytest.mark.parametrize("labels", [LABELS, LABELS[::-1]])
def test_classes_are_the_names_in_the_order_given(encoder, labels):
    classifier = DatalessClassifier(labels, encoder=encoder).fit(TEXTS)
    assert classifier.classes_.tolist() == labels
    assert classifier.decision_function(NEW).shape == (len(NEW), len(labels))
    assert classifier.predict(NEW).tolist() == LABELS


@pytest.mark.parametrize("method", ["ulr", "none"])
@pytest.mark.parametrize("distance", ["cosine", "l2", "dot"])
def test_predict_on_the_fitted_texts_is_the_refinement(encoder, method, distance):
    classifier = DatalessClassifier(LABELS, encoder=encoder, method=method, distance=distance)
    names = classifier.fit_predict(TEXTS)
    np.testing.assert_array_equal(names, np.array(LABELS)[classifier.refinement_.predictions])
    np.testing.assert_array_equal(classifier.predict(TEXTS), names)
    scores = classifier.refinement_.scores
    np.testing.assert_allclose(classifier.decision_function(TEXTS), scores, rtol=1e-6, atol=1e-6)
    assert classifier.n_iter_ == len(classifier.refinement_.objective)
    assert method == "ulr" or classifier.n_iter_ == 1


@pytest.mark.parametrize("distance", ["cosine", "l2", "dot"])
def test_probabilities_are_the_softmax_of_the_scores(encoder, distance):
    classifier = DatalessClassifier(LABELS, encoder=encoder, distance=distance).fit(TEXTS)
    texts = TEXTS + NEW
    proba = classifier.predict_proba(texts)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert (proba >= 0).all()
    np.testing.assert_array_equal(
        classifier.classes_[proba.argmax(axis=1)], classifier.predict(texts)
    )
    scores = classifier.decision_function(texts).astype(np.float64)
    np.testing.assert_allclose(
        np.log(proba[:, 0] / proba[:, 1]),
        (scores[:, 0] - scores[:, 1]) / classifier.temperature_,
        rtol=1e-9,
        atol=1e-12,
    )


def test_temperature_is_the_mean_lead_and_never_zero():
    assert typical_lead(np.array([[0, 3, 1], [5, 1, 1]], dtype=np.float32)) == 3.0
    assert typical_lead(np.zeros((4, 2), dtype=np.float32)) == 1.0


def test_a_text_is_predicted_alone_as_among_others(fitted):
    together = fitted.decision_function(TEXTS)
    alone = np.concatenate([fitted.decision_function([text]) for text in TEXTS])
    np.testing.assert_allclose(alone, together, rtol=1e-5, atol=1e-6 * np.abs(together).max())


def test_batches_and_listeners_change_nothing(encoder, fitted):
    told, passes = [], []
    classifier = DatalessClassifier(LABELS, encoder=encoder)
    batches = iter([TEXTS[:2], TEXTS[2:3], TEXTS[3:]])
    classifier.fit_batches(batches, on_texts=told.append, on_pass=passes.append)
    assert_same(classifier, fitted)
    assert told == [2, 1, len(TEXTS) - 3]
    assert [each.objective for each in passes] == fitted.refinement_.objective.tolist()


def test_method_none_is_the_nearest_label(encoder):
    classifier = DatalessClassifier(LABELS, encoder=encoder, method="none").fit(TEXTS)
    documents, labels = (encoder.encode(each).astype(np.float64) for each in (TEXTS[:-1], LABELS))
    cosine = (documents / np.linalg.norm(documents, axis=1, keepdims=True)) @ (
        labels / np.linalg.norm(labels, axis=1, keepdims=True)
    ).T
    np.testing.assert_allclose(classifier.decision_function(TEXTS[:-1]), cosine, atol=1e-6)
    assert classifier.predict(TEXTS[:-1]).tolist() == [LABELS[i] for i in cosine.argmax(axis=1)]


def test_it_refines_as_refine_does_on_the_same_vectors(encoder, fitted):
    result = refine(encoder.encode(TEXTS), encoder.encode(LABELS))
    np.testing.assert_array_equal(result.scores, fitted.refinement_.scores)
    np.testing.assert_array_equal(result.centroids, fitted.centroids_)


def test_several_phrases_are_averaged_as_unit_vectors(encoder):
    phrases = ["football", "tennis tournament", "olympics"]
    vectors = encoder.encode(phrases).astype(np.float64)
    by_hand = sum(vector / np.linalg.norm(vector) for vector in vectors) / 3
    labels = {"sports": phrases, "business": "money and banks"}
    anchors = label_vectors(encoder, as_label_set(labels))
    np.testing.assert_allclose(anchors[0], by_hand, rtol=1e-6)
    np.testing.assert_array_equal(anchors[1], encoder.encode(["money and banks"])[0])
    classifier = DatalessClassifier(labels, encoder=encoder, method="none", distance="l2")
    np.testing.assert_array_equal(classifier.fit(TEXTS).centroids_, anchors)


def test_template_is_put_around_every_phrase(encoder):
    plain = {name: f"This text is about {name}." for name in LABELS}
    wrapped = DatalessClassifier(LABELS, encoder=encoder, template="This text is about {}.")
    assert_same(wrapped.fit(TEXTS), DatalessClassifier(plain, encoder=encoder).fit(TEXTS))


def test_labels_may_be_a_file(tmp_path, encoder, fitted):
    path = tmp_path / "labels.txt"
    path.write_text("\n".join(LABELS))
    assert_same(DatalessClassifier(path, encoder=encoder).fit(TEXTS), fitted)


# Known examples


@pytest.mark.parametrize("unknown", [None, -1, np.int64(-1), float("nan"), np.nan, pd.NA])
def test_known_examples_are_pinned_and_pull_their_label(encoder, fitted, unknown):
    y = ["business", *[unknown] * (len(TEXTS) - 1)]
    assert fitted.predict(TEXTS[:1]).tolist() == ["sports"]
    classifier = DatalessClassifier(LABELS, encoder=encoder).fit(TEXTS, y)
    assert classifier.refinement_.predictions[0] == LABELS.index("business")
    known = np.array([1, *[-1] * (len(TEXTS) - 1)])
    expected = refine(encoder.encode(TEXTS), encoder.encode(LABELS), known=known)
    np.testing.assert_array_equal(classifier.centroids_, expected.centroids)
    assert classifier.fit_predict(TEXTS, y)[0] == "business"


@pytest.mark.parametrize(
    "kind",
    [
        list,
        tuple,
        iter,
        lambda y: np.array(y, dtype=object),
        pd.Series,
        lambda y: pd.Series(y, dtype="string"),
        lambda y: pd.Series(y, dtype="category"),
        pl.Series,
    ],
)
def test_known_examples_come_in_any_list(encoder, kind):
    y = [None, "business", *[None] * (len(TEXTS) - 2)]
    expected = DatalessClassifier(LABELS, encoder=encoder).fit(TEXTS, y)
    assert_same(DatalessClassifier(LABELS, encoder=encoder).fit(TEXTS, kind(y)), expected)


def test_nothing_known_is_no_examples(encoder, fitted):
    classifier = DatalessClassifier(LABELS, encoder=encoder)
    assert_same(classifier.fit(TEXTS, [None] * len(TEXTS)), fitted)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["sports", "football", None], "y must be label names, and None (or -1) where unknown; nu"),
        (["sports", 0, None], "number 1 is 0. The labels are: sports, business, science and tech"),
        (["sports", None], "got 2 for 3 texts."),
        ("sports", "y must be a list of labels, None (or -1) where unknown; got str."),
        (5, "y must be a list of labels, None (or -1) where unknown; got int."),
        (
            np.full((3, 2), "sports"),
            "y must be a list of labels, None (or -1) where unknown; got s",
        ),
    ],
)
def test_examples_that_fit_no_label_or_text_are_refused(y, message):
    with pytest.raises(LabelError, match=re.escape(message)):
        DatalessClassifier(LABELS, encoder=HashingEncoder()).fit(TEXTS[:3], y)


# What it accepts


@pytest.mark.parametrize(
    "kind",
    [
        tuple,
        iter,
        np.array,
        lambda texts: np.array(texts, dtype=object),
        lambda texts: pd.Series(texts, index=range(9, 0, -1)),
        lambda texts: pd.Series(texts, dtype="string"),
        lambda texts: pd.Series(texts, dtype=object),
        lambda texts: pd.Series(texts, dtype="category"),
        pl.Series,
    ],
)
def test_any_list_of_texts_gives_the_same(encoder, fitted, kind):
    classifier = DatalessClassifier(LABELS, encoder=encoder).fit(kind(TEXTS))
    assert_same(classifier, fitted)
    np.testing.assert_array_equal(classifier.predict(kind(TEXTS)), fitted.predict(TEXTS))


@pytest.mark.parametrize(
    "texts",
    [
        ["a", None, float("nan"), pd.NA],
        np.array(["a", None, np.nan, ""], dtype=object),
        pd.Series(["a", None, None, None]),
        pd.Series(["a", None, None, None], dtype="string"),
        pl.Series(["a", None, None, None]),
    ],
)
def test_missing_texts_are_empty_texts(fitted, texts):
    assert as_texts(texts) == ["a", "", "", ""]
    np.testing.assert_array_equal(fitted.predict(texts), fitted.predict(["a", "", "", ""]))


def test_empty_texts_are_counted_and_get_a_label_that_nothing_speaks_for():
    paper = DatalessClassifier(LABELS, method="ulr").fit(TEXTS)
    assert paper.refinement_.n_zero_documents == 1
    assert paper.predict([""]).tolist() == LABELS[:1]
    np.testing.assert_allclose(paper.predict_proba([""]), 1 / 3)
    mixture = DatalessClassifier(LABELS, method="mixture").fit(TEXTS)
    assert mixture.refinement_.n_zero_documents == 1
    assert mixture.predict_proba([""]).max() < 0.6


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", "texts must be a list of texts; got one text. Put it in a list."),
        (5, "texts must be a list of texts; got int."),
        ([], "there are no texts; at least one is needed."),
        (["a", 5], "texts must be texts; number 1 is 5."),
        (["a", b"b"], "texts must be texts; number 1 is b'b'."),
        ([np.array(["a", "b"])], "texts must be texts; number 0 is array("),
        (np.array([["a"], ["b"]]), "one-dimensional list of texts; got shape (2, 1)."),
        (pd.DataFrame({"text": ["a"]}), "one-dimensional list of texts; got shape (1, 1)."),
    ],
)
def test_what_is_no_list_of_texts_is_refused(fitted, texts, message):
    with pytest.raises(TextError, match=re.escape(message)):
        fitted.predict(texts)
    with pytest.raises(TextError, match=re.escape(message)):
        clone(fitted).fit(texts)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"labels": ["one"]}, LabelError, "at least 2 labels are needed"),
        ({"labels": "a, b"}, LabelError, "labels must be a list of names or a mapping"),
        ({"labels": {"a": "x", "b": " "}}, LabelError, "a phrase of 'b' is empty"),
        ({"template": "about"}, LabelError, r"a template must contain \{\}"),
        ({"encoder": "bert"}, EncoderError, "encoder must be one of static"),
        ({"encoder": 5}, EncoderError, "an encoder is a name or an object"),
        ({"method": "best"}, ArrayError, "method must be one of auto, ulr, none, mixture"),
        ({"distance": "cos"}, ArrayError, "distance must be one of cosine, l2, dot"),
        ({"max_iterations": 0}, ArrayError, "max_iterations must be a whole number of at least 1"),
        ({"threads": 0}, ArrayError, "threads must be a whole number of at least 1"),
    ],
)
def test_arguments_are_checked_by_fit(arguments, error, message):
    classifier = DatalessClassifier(**{"labels": LABELS, "encoder": HashingEncoder(), **arguments})
    with pytest.raises(error, match=message):
        classifier.fit(TEXTS)


def test_labels_the_encoder_knows_nothing_of_are_refused():
    class Knows:
        def encode(self, texts):
            return np.array([[float("goal" in text), float("bank" in text)] for text in texts])

    labels = {"sports": ["goal", "ball"], "business": "bank"}
    with pytest.raises(LabelError, match="label 'sports': the encoder knows no word of 'ball'"):
        DatalessClassifier(labels, encoder=Knows()).fit(TEXTS)


# What it saves


@pytest.fixture
def saved(fitted, tmp_path):
    path = tmp_path / "model"
    fitted.save(path)
    return path


def rewrite(path, **changes):
    settings = json.loads((path / "model.json").read_text(encoding="utf-8"))
    (path / "model.json").write_text(json.dumps(settings | changes), encoding="utf-8")


@pytest.mark.parametrize("method", ["ulr", "none"])
@pytest.mark.parametrize("distance", ["cosine", "l2", "dot"])
def test_loaded_model_predicts_the_same(tmp_path, encoder, method, distance):
    labels = {"sports ⚽": ["football", "tennis"], "日本": "Japan", "business": None}
    arguments = {
        "method": method,
        "distance": distance,
        "template": "About {}",
        "wordings": "combinations",
        "sample": 9,
        "extra_labels": ["math"],
        "seed": 3,
        "max_iterations": np.int64(9),
    }
    saved = DatalessClassifier(labels, encoder=encoder, **arguments).fit(TEXTS)
    saved.save(tmp_path / "model")
    loaded = DatalessClassifier.load(tmp_path / "model")
    assert_same(loaded, saved, TEXTS + NEW)
    assert loaded.n_iter_ == saved.n_iter_
    assert {name: getattr(loaded, name) for name in arguments} == arguments
    assert_same(loaded.fit(TEXTS), saved)


def test_saved_model_is_json_and_safetensors_only(saved):
    assert sorted(file.name for file in saved.iterdir()) == ["centroids.safetensors", "model.json"]
    assert list(saved.parent.iterdir()) == [saved]


def test_names_are_saved_whatever_the_encoding_of_the_system(tmp_path):
    code = (
        "import sys; from ulr import DatalessClassifier;"
        "c = DatalessClassifier(['caf\\u00e9', '\\U0001f600 joy']).fit(['espresso', 'laughter']);"
        "c.save(sys.argv[1])"
    )
    system = os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    subprocess.run([sys.executable, "-c", code, tmp_path / "model"], env=system, check=True)
    assert DatalessClassifier.load(tmp_path / "model").classes_.tolist() == ["café", "😀 joy"]


def test_existing_model_is_kept_unless_overwritten(saved, encoder, fitted):
    other = DatalessClassifier(["cooking", "gardening"], encoder=encoder).fit(TEXTS)
    with pytest.raises(ModelError, match="already exists; choose another name, or replace it with"):
        other.save(saved)
    assert_same(DatalessClassifier.load(saved), fitted)
    other.save(saved, overwrite=True)
    assert_same(DatalessClassifier.load(saved), other)
    assert list(saved.parent.iterdir()) == [saved]


def test_what_is_no_model_is_never_replaced(fitted, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for path in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(ModelError, match="is not a saved model, so it is not replaced"):
            fitted.save(path, overwrite=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_missing_parent_folder_is_named(fitted, tmp_path):
    with pytest.raises(ModelError, match=r"there is no folder .*none to write model into"):
        fitted.save(tmp_path / "none" / "model")


@pytest.mark.parametrize("name", ["model", "new"])
def test_failed_save_leaves_what_was_there(saved, fitted, name):
    broken = pickle.loads(pickle.dumps(fitted)).set_params(template=b"not JSON")
    with pytest.raises(TypeError, match="bytes is not JSON serializable"):
        broken.save(saved.with_name(name), overwrite=True)
    assert list(saved.parent.iterdir()) == [saved]
    assert_same(DatalessClassifier.load(saved), fitted)


def write_centroids(path, rows):
    file = path / "centroids.safetensors"
    save_file({"centroids": np.ones((rows, 256))}, file)
    rewrite(path, arrays_sha256=sha256(file))


def write_nonsense(path):
    file = path / "centroids.safetensors"
    file.write_bytes(b"nonsense")
    rewrite(path, arrays_sha256=sha256(file))


def flip_a_bit(path):
    file = path / "centroids.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: (path / "model.json").unlink(), "is not a saved model; it has no model.json"),
        (lambda path: (path / "model.json").write_text("{"), "model.json cannot be read: "),
        (lambda path: (path / "model.json").write_bytes(b"\xff"), "model.json cannot be read: "),
        (lambda path: (path / "model.json").write_text("[]"), "is of model format None; "),
        (lambda path: rewrite(path, format=9), "is of model format 9; this version of ulr reads f"),
        (lambda path: (path / "model.json").write_text('{"format": 3}'), "is not a whole saved mo"),
        (lambda path: rewrite(path, labels=None), "is not a whole saved model: TypeError"),
        (lambda path: rewrite(path, labels=[]), "names 0 labels, centroids.safetensors holds 3"),
        (lambda path: write_centroids(path, 2), "names 3 labels, centroids.safetensors holds 2"),
        (flip_a_bit, "centroids.safetensors is damaged: its hash is not the saved one"),
        (write_nonsense, "is not a whole saved model: SafetensorError"),
        (lambda path: (path / "centroids.safetensors").unlink(), "is not a whole saved model: Fi"),
        (lambda path: rewrite(path, encoder_fingerprint="x"), "needs the encoder x; this one is s"),
    ],
)
def test_damaged_model_is_refused(saved, damage, message):
    damage(saved)
    with pytest.raises(ModelError, match=message):
        DatalessClassifier.load(saved)


def test_missing_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"none is not a saved model; it has no model\.json\."):
        DatalessClassifier.load(tmp_path / "none")


def test_encoder_object_is_given_again_to_load(tmp_path, encoder):
    fitted = DatalessClassifier(LABELS, encoder=HashingEncoder()).fit(TEXTS)
    fitted.save(tmp_path / "model")
    assert_same(DatalessClassifier.load(tmp_path / "model", encoder=HashingEncoder()), fitted)
    with pytest.raises(ModelError, match=r"HashingEncoder; give it to load\(path, encoder=…\)"):
        DatalessClassifier.load(tmp_path / "model")
    with pytest.raises(ModelError, match="HashingEncoder; this one is static wordllama"):
        DatalessClassifier.load(tmp_path / "model", encoder=encoder)
    with pytest.raises(ArrayError, match="n_dims=8"):
        DatalessClassifier.load(tmp_path / "model", encoder=HashingEncoder(9)).predict(NEW)


class SharedWords:
    """Scores a text with a label by the cosine of their vectors, pair by pair."""

    fingerprint = "shared words"
    sharpness = 20.0

    def score(self, texts, labels, /):
        static = load_encoder("static")
        each, names = static.encode(texts), static.encode(labels)
        lengths = np.outer(np.linalg.norm(each, axis=1), np.linalg.norm(names, axis=1))
        return self.sharpness * (each @ names.T) / np.maximum(lengths, 1e-9)


def test_an_encoder_that_scores_pairs_is_refined_by_jensen_shannon():
    classifier = DatalessClassifier(LABELS, encoder=SharedWords()).fit(TEXTS)
    assert classifier.distance_ == "jensen-shannon"
    scores = SharedWords().score(TEXTS, LABELS).astype(np.float64)
    points = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    expected = refine(points.astype(np.float32), distance="jensen-shannon")
    np.testing.assert_array_equal(classifier.refinement_.predictions, expected.predictions)
    np.testing.assert_allclose(classifier.centroids_, expected.centroids, atol=1e-6)
    np.testing.assert_array_equal(
        classifier.predict(TEXTS), classifier.classes_[expected.predictions]
    )
    assert classifier.predict_proba(NEW).sum(axis=1) == pytest.approx(1.0)


def test_scores_of_several_phrases_are_averaged():
    labels = {"sports": ["football", "tennis"], "business": ["money", "shares"]}
    classifier = DatalessClassifier(labels, encoder=SharedWords(), method="none").fit(TEXTS)
    scores = SharedWords().score(TEXTS, ["football", "tennis", "money", "shares"])
    means = scores.reshape(-1, 2, 2).mean(axis=2)
    np.testing.assert_array_equal(classifier.refinement_.predictions, means.argmax(axis=1))


def test_a_scorer_of_pairs_is_saved_and_loaded(tmp_path):
    classifier = DatalessClassifier(LABELS, encoder=SharedWords(), template="About {}").fit(TEXTS)
    classifier.save(tmp_path / "model")
    again = DatalessClassifier.load(tmp_path / "model", encoder=SharedWords())
    assert again.distance_ == "jensen-shannon"
    np.testing.assert_array_equal(again.predict_proba(NEW), classifier.predict_proba(NEW))


def test_a_scorer_of_pairs_has_no_vectors_to_compare():
    with pytest.raises(ArrayError, match="'cosine' compares vectors, and this encoder gives"):
        DatalessClassifier(LABELS, encoder=SharedWords(), distance="cosine").fit(TEXTS)


class Counting(HashingEncoder):
    """Remembers how many texts it was given."""

    fingerprint = "counting"
    given = 0

    def encode(self, texts):
        self.given += len(texts)
        return super().encode(texts)


def test_with_a_cache_no_text_is_encoded_twice(tmp_path):
    first, second = Counting(), Counting()
    plain = DatalessClassifier(LABELS, encoder=Counting()).fit(TEXTS)
    once = DatalessClassifier(LABELS, encoder=first, cache=tmp_path / "vectors").fit(TEXTS)
    again = DatalessClassifier(LABELS, encoder=second, cache=tmp_path / "vectors").fit(TEXTS)
    for each in (once, again):
        np.testing.assert_array_equal(each.refinement_.scores, plain.refinement_.scores)
    assert (first.given, second.given) == (len(TEXTS) + len(LABELS), 0)
    again.predict(TEXTS[:4] + NEW)
    assert second.given == len(NEW)


def test_a_loaded_model_may_have_a_cache_of_its_own(tmp_path):
    DatalessClassifier(LABELS, encoder=Counting()).fit(TEXTS).save(tmp_path / "model")
    encoder = Counting()
    for _ in range(2):
        model = DatalessClassifier.load(
            tmp_path / "model", encoder=encoder, cache=tmp_path / "vectors"
        )
        model.predict(NEW)
    assert encoder.given == len(NEW)


def test_scores_of_labels_are_cached_by_label(tmp_path):
    for labels in (LABELS, LABELS[::-1], LABELS):
        cached = DatalessClassifier(labels, encoder=SharedWords(), cache=tmp_path).fit(TEXTS)
        plain = DatalessClassifier(labels, encoder=SharedWords()).fit(TEXTS)
        np.testing.assert_array_equal(cached.refinement_.scores, plain.refinement_.scores)


def test_the_least_like_their_names_get_no_label(tmp_path):
    strange = ["qwe rty uio", "zxc vbn"]
    classifier = DatalessClassifier(LABELS, none_share=0.3, none_label="other")
    found = classifier.fit_predict(TEXTS + strange)
    names, vectors = classifier.names_, load_encoder("static").encode(TEXTS + strange)
    lengths = np.maximum(np.linalg.norm(vectors, axis=1), 1e-9)
    likeness = (vectors / lengths[:, None] * names[classifier.refinement_.predictions]).sum(axis=1)
    least = np.argsort(likeness)[:4]
    assert set(np.flatnonzero(found == "other")) <= set(least)
    assert (found == "other").sum() == 3
    np.testing.assert_array_equal(classifier.predict(TEXTS + strange), found)
    classifier.save(tmp_path / "model")
    again = DatalessClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(TEXTS + strange), found)
    assert "other" not in classifier.classes_


def test_known_texts_are_never_none():
    y = ["sports", *[None] * (len(TEXTS) - 1)]
    classifier = DatalessClassifier(LABELS, none_share=0.5)
    assert classifier.fit_predict(TEXTS, y)[0] == "sports"
    assert classifier.is_none_.sum() == 4


def test_none_of_a_scorer_of_pairs_is_by_probability():
    classifier = DatalessClassifier(LABELS, encoder=SharedWords(), none_share=0.4).fit(TEXTS)
    points = classifier.text_encoder_.encode(TEXTS)
    own = points[np.arange(len(TEXTS)), classifier.refinement_.predictions]
    np.testing.assert_array_equal(classifier.is_none_, own < np.quantile(own, 0.4))


@pytest.mark.parametrize("share", [0, 1, -0.1, "half"])
def test_none_shares_that_cannot_be_are_refused(share):
    with pytest.raises(ArrayError, match="none_share must be between 0 and 1; got"):
        DatalessClassifier(LABELS, none_share=share).fit(TEXTS)


def test_none_must_not_be_a_label():
    with pytest.raises(LabelError, match="'sports' is one of the labels; choose another"):
        DatalessClassifier(LABELS, none_share=0.1, none_label="sports").fit(TEXTS)


# Ensembles of wordings

WORDED = {
    "sports": ["sports", "football match", "tennis"],
    "business": ["business", "banks and money"],
    "science and technology": "science",
}


def worded(encoder, labels=WORDED, **options):
    # The paper's method: by mixtures, all wordings of so few texts come to the same.
    return DatalessClassifier(labels, encoder=encoder, **{"method": "ulr", **options})


@pytest.fixture(scope="module")
def ensemble(encoder):
    return worded(encoder, wordings="combinations").fit(TEXTS)


@pytest.mark.parametrize(
    ("distance", "method"), [("cosine", "auto"), ("l2", "ulr"), ("dot", "none")]
)
def test_an_ensemble_is_that_of_the_vectors_of_every_combination(encoder, distance, method):
    options = {"distance": distance, "method": method}
    classifier = DatalessClassifier(WORDED, encoder=encoder, wordings="combinations", **options)
    names = classifier.fit_predict(TEXTS)
    sets = [encoder.encode(list(each)) for each in product(*map(_phrases, WORDED.values()))]
    expected = refine_ensemble(encoder.encode(TEXTS), sets, **options)
    np.testing.assert_array_equal(classifier.refinement_.scores, expected.scores)
    np.testing.assert_array_equal(names, classifier.classes_[expected.predictions])
    np.testing.assert_array_equal(classifier.centroids_, expected.centroids)
    assert (classifier.refinement_.n_sets, len(classifier.wordings_)) == (6, 6)
    assert classifier.n_iter_ == expected.n_iterations


def _phrases(given):
    return [given] if isinstance(given, str) else given


def test_an_ensemble_predicts_the_fitted_texts_as_it_fitted_them(ensemble):
    fitted_names = ensemble.classes_[ensemble.refinement_.predictions]
    np.testing.assert_array_equal(ensemble.predict(TEXTS), fitted_names)
    np.testing.assert_array_equal(ensemble.decision_function(TEXTS), ensemble.refinement_.scores)
    proba = ensemble.predict_proba(TEXTS + NEW)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(
        ensemble.classes_[proba.argmax(axis=1)], ensemble.predict(TEXTS + NEW)
    )
    assert ensemble.predict(NEW).tolist() == LABELS


def test_average_is_the_default_and_one_set(encoder, ensemble):
    default = worded(encoder).fit(TEXTS)
    average = worded(encoder, wordings="average", sample=2, seed=9)
    assert_same(average.fit(TEXTS), default)
    assert (default.wordings_, default.refinement_.n_sets) == (None, 1)
    anchors = label_vectors(encoder, as_label_set(WORDED))
    expected = refine(encoder.encode(TEXTS), anchors, method="ulr")
    np.testing.assert_array_equal(default.refinement_.scores, expected.scores)
    assert not np.array_equal(default.refinement_.scores, ensemble.refinement_.scores)


def test_one_phrase_a_label_is_an_ensemble_of_one(encoder, fitted):
    alone = DatalessClassifier(LABELS, encoder=encoder, wordings="combinations").fit(TEXTS)
    np.testing.assert_array_equal(alone.refinement_.predictions, fitted.refinement_.predictions)
    np.testing.assert_allclose(alone.predict_proba(NEW), fitted.predict_proba(NEW), atol=1e-5)
    assert alone.refinement_.n_sets == 1


SETS = [["football", "money", "science"], ["sport", "trade", "technology"]]


def test_whole_sets_come_in_any_way(tmp_path, encoder):
    path = tmp_path / "sets.txt"
    path.write_text("# two\nfootball; money; science\nsport; trade; technology\n")
    kinds = [SETS, tuple(map(tuple, SETS)), path, Wordings(tuple(map(tuple, SETS)), 2)]
    first, *others = [worded(encoder, LABELS, wordings=kind).fit(TEXTS) for kind in kinds]
    sets = [encoder.encode(each) for each in SETS]
    expected = refine_ensemble(encoder.encode(TEXTS), sets, method="ulr")
    np.testing.assert_array_equal(first.refinement_.scores, expected.scores)
    assert first.classes_.tolist() == LABELS
    for other in others:
        assert_same(other, first)


def test_the_template_is_put_around_the_phrases_of_every_set(encoder):
    template = "This text is about {}."
    without = worded(encoder, LABELS, wordings=SETS).fit(TEXTS)
    wrapped = worded(encoder, LABELS, wordings=SETS, template=template).fit(TEXTS)
    typed = [[template.replace("{}", phrase) for phrase in each] for each in SETS]
    plain = worded(encoder, LABELS, wordings=typed).fit(TEXTS)
    assert_same(wrapped, plain)
    assert not np.array_equal(plain.predict_proba(NEW), without.predict_proba(NEW))


def test_a_sample_is_drawn_by_its_seed(encoder):
    one, again, other = (
        worded(encoder, wordings="combinations", sample=2, seed=seed).fit(TEXTS)
        for seed in (1, 1, 2)
    )
    assert one.wordings_.sets == again.wordings_.sets != other.wordings_.sets
    assert (len(one.wordings_), one.wordings_.n_possible) == (2, 6)
    assert_same(one, again)
    assert not np.array_equal(one.refinement_.scores, other.refinement_.scores)


def test_sets_are_told_as_they_are_done(encoder):
    told, texts = [], []
    classifier = worded(encoder, wordings="combinations")
    classifier.fit_batches(
        [TEXTS[:4], TEXTS[4:]], extra_batches=[NEW], on_texts=texts.append, on_set=told.append
    )
    assert (told, texts) == ([6] * 6, [4, len(TEXTS) - 4, len(NEW)])
    expected = worded(encoder, wordings="combinations").fit(TEXTS, extra_texts=NEW)
    assert_same(classifier, expected)


def test_known_texts_are_pinned_in_an_ensemble(encoder, ensemble):
    y = ["business", *[None] * (len(TEXTS) - 1)]
    classifier = worded(encoder, wordings="combinations")
    assert ensemble.predict(TEXTS[:1]).tolist() == ["sports"]
    assert classifier.fit_predict(TEXTS, y)[0] == "business"
    assert not np.array_equal(classifier.predict_proba(NEW), ensemble.predict_proba(NEW))


def test_none_goes_with_an_ensemble(tmp_path, encoder):
    classifier = DatalessClassifier(
        WORDED, encoder=encoder, wordings="combinations", none_share=0.3, none_label="other"
    )
    found = classifier.fit_predict(TEXTS)
    assert (found == "other").sum() == round(0.3 * len(TEXTS))
    classifier.save(tmp_path / "model")
    again = DatalessClassifier.load(tmp_path / "model", encoder=encoder)
    np.testing.assert_array_equal(again.predict(TEXTS), found)


def test_clones_and_pickles_of_an_ensemble_are_the_same(ensemble):
    copy = clone(ensemble)
    assert not hasattr(copy, "wordings_")
    assert_same(copy.fit(TEXTS), ensemble)
    again = pickle.loads(pickle.dumps(ensemble))
    assert_same(again, ensemble)
    assert again.wordings_ == ensemble.wordings_


@pytest.mark.parametrize(
    "wordings",
    [
        {"wordings": "combinations"},
        {"wordings": "combinations", "sample": 3, "seed": 2},
        {"wordings": "combinations", "sample": 4, "seed": 5},
        {"wordings": SETS},
        {"wordings": Wordings(tuple(map(tuple, SETS)), 2), "template": "About {}"},
    ],
)
def test_a_saved_ensemble_predicts_the_same_and_learns_the_same(tmp_path, encoder, wordings):
    labels = {"sports": [*WORDED["sports"], "athletes"], "business": ["trade", "money", "shops"]}
    labels |= {"science and technology": ["science", "computers"]}
    saved = worded(encoder, labels, extra_labels=["cooking"], **wordings).fit(TEXTS)
    saved.save(tmp_path / "model")
    loaded = DatalessClassifier.load(tmp_path / "model", encoder=encoder)
    assert_same(loaded, saved, TEXTS + NEW)
    assert loaded.wordings_.sets == saved.wordings_.sets
    assert loaded.extra_labels_ == saved.extra_labels_ == ("cooking",)
    assert_same(loaded.fit(TEXTS), saved)


def test_a_saved_model_needs_no_file_of_sets_or_labels_any_more(tmp_path, encoder):
    sets, extra = tmp_path / "sets.json", tmp_path / "extra.txt"
    sets.write_text(json.dumps(SETS))
    extra.write_text("cooking\ntravel\n")
    saved = worded(encoder, LABELS, wordings=sets, extra_labels=extra)
    saved.fit(TEXTS).save(tmp_path / "model")
    sets.unlink()
    extra.unlink()
    loaded = DatalessClassifier.load(tmp_path / "model", encoder=encoder)
    assert_same(loaded, saved)
    assert loaded.extra_labels_ == ("cooking", "travel")
    assert_same(loaded.fit(TEXTS), saved)


# Extra labels and texts


@pytest.mark.parametrize("wordings", ["average", "combinations"])
def test_extra_labels_take_part_and_are_never_predicted(encoder, wordings):
    extra = ["tennis tournament", "cooking"]
    without = worded(encoder, wordings=wordings).fit(TEXTS)
    classifier = worded(encoder, wordings=wordings, extra_labels=extra).fit(TEXTS)
    assert classifier.classes_.tolist() == LABELS
    assert classifier.extra_labels_ == tuple(extra)
    assert without.extra_labels_ == ()
    assert set(classifier.predict([*TEXTS, *NEW, *extra])) <= set(LABELS)
    assert classifier.refinement_.scores.shape == (len(TEXTS), 3)
    assert not np.array_equal(classifier.centroids_, without.centroids_)
    np.testing.assert_array_equal(classifier.refinement_.unrefined, without.refinement_.unrefined)


def test_extra_labels_are_encoded_inside_the_template(encoder):
    template = "A text on {}"
    classifier = DatalessClassifier(
        LABELS, encoder=encoder, extra_labels=["cooking"], template=template
    ).fit(TEXTS)
    names = [template.replace("{}", name) for name in [*LABELS, "cooking"]]
    vectors = encoder.encode(names)
    expected = refine(encoder.encode(TEXTS), vectors[:3], extra_labels=vectors[3:])
    np.testing.assert_array_equal(classifier.refinement_.scores, expected.scores)


@pytest.mark.parametrize("wordings", ["average", "combinations"])
def test_extra_texts_are_refined_on_and_get_no_label(encoder, wordings):
    extra = ["The striker bought shares", "A goal for the bank", "The team of researchers"] * 4
    without = worded(encoder, wordings=wordings).fit(TEXTS)
    classifier = worded(encoder, wordings=wordings).fit(TEXTS, extra_texts=extra)
    assert len(classifier.refinement_.predictions) == len(TEXTS)
    assert len(classifier.is_none_) == len(TEXTS)
    assert not np.array_equal(classifier.refinement_.scores, without.refinement_.scores)
    np.testing.assert_array_equal(
        classifier.predict(TEXTS), classifier.classes_[classifier.refinement_.predictions]
    )
    if wordings == "average":
        anchors = label_vectors(encoder, as_label_set(WORDED))
        vectors, more = encoder.encode(TEXTS), encoder.encode(extra)
        expected = refine(vectors, anchors, method="ulr", extra_documents=more)
        np.testing.assert_array_equal(classifier.refinement_.scores, expected.scores)


@pytest.mark.parametrize("wordings", ["average", "combinations"])
def test_all_texts_may_be_known_where_extra_texts_are_not(encoder, wordings):
    y = ["sports", "business", "sports"]
    classifier = DatalessClassifier(WORDED, encoder=encoder, wordings=wordings)
    classifier.fit(TEXTS[:3], y, extra_texts=TEXTS[3:])
    assert classifier.classes_[classifier.refinement_.predictions].tolist() == y
    assert classifier.predict(NEW).tolist() == LABELS
    np.testing.assert_allclose(classifier.predict_proba(NEW).sum(axis=1), 1.0)
    with pytest.raises(ArrayError, match="none_share is of the texts whose label is not known"):
        classifier.set_params(none_share=0.1).fit(TEXTS[:3], y, extra_texts=TEXTS[3:])
    assert classifier.predict(NEW).tolist() == LABELS


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"wordings": "sum"}, LabelError, "wordings must be 'average', 'combinations' or sets of"),
        ({"wordings": [["a", "b"]]}, LabelError, "set 1: a set needs a phrase for each of the 3"),
        ({"wordings": "combinations", "sample": 0}, LabelError, "sample must be a positive whole"),
        ({"extra_labels": "math"}, LabelError, "extra labels must be a list of names; got 'math'"),
        ({"extra_labels": ["Sports"]}, LabelError, "extra label 1: extra label 'Sports' equals a"),
        ({"extra_labels": []}, LabelError, "there are no extra labels; name at least one"),
        (
            {"wordings": SETS, "extra_labels": ["Trade"]},
            LabelError,
            "'Trade' equals a name or phrase of the label 'business'",
        ),
        (
            {"extra_labels": ["math"], "prior": [0.5, 0.3, 0.2]},
            ArrayError,
            "proportions do not go with extra_labels",
        ),
    ],
)
def test_wordings_and_extra_labels_that_cannot_be_are_refused_by_fit(arguments, error, message):
    classifier = DatalessClassifier(LABELS, encoder=HashingEncoder(), **arguments)
    with pytest.raises(error, match=re.escape(message)):
        classifier.fit(TEXTS)


def test_extra_texts_must_be_texts(encoder):
    with pytest.raises(TextError, match="texts must be texts; number 1 is 5"):
        DatalessClassifier(LABELS, encoder=encoder).fit(TEXTS, extra_texts=["a", 5])
    with pytest.raises(TextError, match="there are no texts; at least one is needed"):
        DatalessClassifier(LABELS, encoder=encoder).fit(TEXTS, extra_texts=[])


def test_an_extra_label_that_the_encoder_does_not_know_is_named():
    class Knows:
        def encode(self, texts):
            return np.array([[float("goal" in text), float("bank" in text)] for text in texts])

    with pytest.raises(LabelError, match="extra label 'tea': the encoder knows no word of 'tea'"):
        DatalessClassifier(["goal", "bank"], encoder=Knows(), extra_labels=["tea"]).fit(TEXTS)


@pytest.mark.parametrize(
    "arguments", [{"wordings": "combinations"}, {"wordings": SETS}, {"extra_labels": ["math"]}]
)
def test_a_scorer_of_pairs_has_no_ensembles_and_no_extra_labels(arguments):
    with pytest.raises(LabelError, match="need an encoder of texts; this one scores pairs of text"):
        DatalessClassifier(LABELS, encoder=SharedWords(), **arguments).fit(TEXTS)


class HashedPairs:
    """Scores a text with a label by the product of their hashed vectors."""

    fingerprint = "hashed pairs"

    def score(self, texts, labels, /):
        return HashingEncoder().encode(texts) @ HashingEncoder().encode(labels).T


def test_a_scorer_of_pairs_is_refined_on_extra_texts():
    classifier = DatalessClassifier(LABELS, encoder=HashedPairs()).fit(TEXTS, extra_texts=NEW)
    without = DatalessClassifier(LABELS, encoder=HashedPairs()).fit(TEXTS)
    assert len(classifier.refinement_.predictions) == len(TEXTS)
    assert not np.array_equal(classifier.centroids_, without.centroids_)
