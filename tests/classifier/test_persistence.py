"""Saved models: equal predictions after loading, and refusal of everything that was tampered with."""

import contextlib
import copy
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tiny_task import LABELS, NEW, PHRASES, TEXTS, CosineScorer, HashingEncoder, assert_same, static
from ulr import ZeroShotClassifier
from ulr.errors import ArrayError, ModelError
from ulr.files import sha256

FILES = ["arrays.safetensors", "model.json"]
MIXED = [*TEXTS, *NEW, "", "qwe rty"]


def save(path, labels=LABELS, texts=TEXTS, y=None, **arguments):
    arguments = {"encoder": static(), **arguments}
    classifier = ZeroShotClassifier(labels, **arguments).fit(texts, y)
    classifier.save(path)
    return classifier


@pytest.fixture
def saved(tmp_path):
    """The folder of a small model with word weights and a none label."""
    save(tmp_path / "model", encoder=HashingEncoder(), none_share=0.2)
    return tmp_path / "model"


def fitted():
    return ZeroShotClassifier(LABELS, encoder=HashingEncoder()).fit(TEXTS)


def load(path):
    return ZeroShotClassifier.load(path, encoder=HashingEncoder())


def write_settings(path, content):
    """Write settings with the hash that belongs to them, as somebody who tampers would."""
    content.pop("sha256", None)
    content["sha256"] = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    (path / "model.json").write_text(json.dumps(content), encoding="utf-8")


def read_settings(path):
    return json.loads((path / "model.json").read_text(encoding="utf-8"))


def tamper(path, **changes):
    content = read_settings(path)
    settings = content["settings"] | changes.pop("settings", {})
    write_settings(path, content | {"settings": settings} | changes)


def tamper_arrays(path, **changes):
    """Replace arrays by name, or remove them, with hashes that belong to them."""
    file = path / "arrays.safetensors"
    arrays = load_file(file) | changes
    save_file({name: array for name, array in arrays.items() if array is not None}, file)
    tamper(path, arrays_sha256=sha256(file))


def assert_refused(path, match=r"damaged|cannot be read|model format"):
    with pytest.raises(ModelError, match=match) as refused:
        load(path)
    message = str(refused.value)
    assert "\n" not in message
    assert len(message) < 400 + len(str(path))


# Round trips


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"method": "ulr"},
        {"method": "none"},
        {"method": "ulr", "distance": "l2"},
        {"distance": "dot"},
        {"none_share": 0.3, "none_label": "other"},
        {"prior": [0.5, 0.3, 0.2], "fit_sample": 1000},
        {"method": "ulr", "extra_labels": ["cooking"], "template": "About {}"},
        {"encoder": CosineScorer(), "template": "About {}"},
    ],
    ids=str,
)
def test_a_loaded_classifier_predicts_and_refits_the_same(tmp_path, arguments):
    original = save(tmp_path / "model", PHRASES, **arguments)
    encoder = arguments.get("encoder")
    loaded = ZeroShotClassifier.load(tmp_path / "model", encoder=encoder or static())
    assert_same(loaded, original, MIXED)
    assert (loaded.fitted_.rule.words is None) == (original.method_ != "discriminant")
    for name in ("method_", "distance_", "n_iter_", "extra_labels_"):
        assert getattr(loaded, name) == getattr(original, name)
    assert loaded.label_set_.names == tuple(LABELS)
    assert_same(loaded.set_params(encoder=encoder or static()).fit(TEXTS), original, MIXED)


def test_arguments_are_restored(tmp_path):
    arguments = {
        "method": "ulr",
        "distance": "l2",
        "template": "About {}",
        "extra_labels": ("math",),
        "random_state": np.int64(3),
        "max_iter": np.int64(9),
        "none_share": np.float64(0.25),
    }
    labels = {"sports ⚽": ["football", "tennis"], "日本": "Japan", "business": None}
    save(tmp_path / "model", labels, **arguments)
    loaded = ZeroShotClassifier.load(tmp_path / "model")
    assert {name: getattr(loaded, name) for name in arguments} == arguments
    assert loaded.label_set_.names == tuple(labels)


def test_integer_classes_and_the_encoder_are_restored(tmp_path):
    original = save(tmp_path / "model", texts=TEXTS[:3], y=[2, 0, 0])
    assert original.predict([""]) == [-1]
    loaded = ZeroShotClassifier.load(tmp_path / "model")
    assert loaded.encoder == "static"
    assert loaded.classes_.tolist() == [0, 1, 2]
    assert_same(loaded, original, MIXED)


# Writing


def test_an_existing_model_is_replaced_only_if_that_is_wanted(saved):
    other = ZeroShotClassifier(["cooking", "gardening"], encoder=HashingEncoder()).fit(TEXTS)
    before = {name: (saved / name).read_bytes() for name in FILES}
    with pytest.raises(ModelError, match="already exists; choose another name, or replace it with"):
        other.save(saved)
    assert {name: (saved / name).read_bytes() for name in FILES} == before
    other.save(saved, overwrite=True)
    assert_same(load(saved), other)
    assert list(saved.parent.iterdir()) == [saved]
    assert sorted(file.name for file in saved.iterdir()) == FILES


@pytest.mark.parametrize("place", ["file", "folder", "model", "empty"])
def test_anything_but_a_model_is_never_replaced(saved, tmp_path, place):
    target = tmp_path / place
    if place == "file":
        target.write_text("mine")
    else:
        target.mkdir(exist_ok=True)
    if place in ("folder", "model"):
        (target / "notes.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ModelError, match=r"is a file; name a folder|so it is not replaced"):
        fitted().save(target, overwrite=True)
    with pytest.raises(ModelError, match=r"there is no folder .*none to write model into"):
        fitted().save(tmp_path / "none" / "model")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["model", "new"])
def test_a_failed_save_leaves_the_earlier_model(saved, name):
    expected = load(saved).predict_proba(MIXED)
    broken = fitted()
    broken.fitted_ = broken.fitted_.with_settings(none_label=b"bytes")
    with pytest.raises(TypeError, match="a bytes cannot be saved"):
        broken.save(saved.with_name(name), overwrite=True)
    assert list(saved.parent.iterdir()) == [saved]
    np.testing.assert_array_equal(load(saved).predict_proba(MIXED), expected)


# Damage and tampering


def same_values(one, other):
    """Whether two JSON texts have equal values, as numbers that differ in the last digit may."""
    try:
        return json.loads(one) == json.loads(other)
    except ValueError:
        return False


@pytest.mark.parametrize("name", FILES)
def test_every_changed_byte_and_every_truncation_is_detected(saved, name):
    file = saved / name
    content = file.read_bytes()
    step = max(1, len(content) // 100)
    for place in range(0, len(content), step):
        changed = bytearray(content)
        changed[place] ^= 1
        file.write_bytes(changed)
        if not same_values(changed, content):
            assert_refused(saved)
        file.write_bytes(content[:place])
        assert_refused(saved)
    file.write_bytes(content)
    assert load(saved).predict(NEW).shape == (3,)


@pytest.mark.parametrize("name", FILES)
def test_missing_and_foreign_files_are_named(saved, name):
    (saved / name).write_bytes(b"nonsense")
    if name == "arrays.safetensors":
        tamper(saved, arrays_sha256=sha256(saved / name))
    assert_refused(saved, f"{name} cannot be read")
    (saved / name).unlink()
    assert_refused(saved, name)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "model format None; this version of ulr reads format"),
        (b'{"format": 99}', "has model format 99"),
        (b"[" * 100_000, "model.json cannot be read"),
        (b'{"format": 1' + b"0" * 5000 + b"}", "model.json cannot be read"),
        (b'{"format": "' + b"x" * 100_000 + b'"}', "has model format x"),
    ],
)
def test_settings_that_are_not_those_of_a_model_are_refused(saved, content, message):
    (saved / "model.json").write_bytes(content)
    assert_refused(saved, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [{"name": "a", "phrases": ["a"]}] * 3}, "must be different names"),
        ({"labels": [{"name": x, "phrases": []} for x in "abc"]}, "has no phrases"),
        ({"labels": [{"name": x, "phrases": [x]} for x in "ab"]}, "names 2 labels, but holds 3"),
        ({"temperature": 10**400}, "a number was expected"),
        ({"temperature": 1e-300}, "a positive number was expected"),
        ({"none": ["sports", 0.1, 0.1]}, "its none label is one of the labels"),
        ({"encoder_fingerprint": "x"}, "needs the encoder x; this one is"),
        ({"settings": {"cache": "/tmp/x"}}, "it has other settings than expected"),
        ({"settings": {"max_iter": "9"}}, "the setting 'max_iter' must not be '9'"),
        ({"settings": {"multilabel": True, "none_share": None}}, "its chances of labels do not"),
        ({"settings": {"extra_labels": ["sports"]}}, "equals a name or phrase of the label"),
    ],
)
def test_settings_that_do_not_fit_are_refused_in_spite_of_their_hash(saved, changes, message):
    tamper(saved, **changes)
    assert_refused(saved, message)


VIEW = "rule.view0.weights"


def words(*columns):
    arrays = {"idf": np.ones(2), "weights": np.ones((2, 3)), "columns": np.array(columns)}
    return {f"rule.words.{name}": array for name, array in arrays.items()}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({VIEW: None}, "missing or disagree"),
        ({VIEW: np.ones((2, 8))}, "missing or disagree"),
        ({VIEW: np.ones((3, 7))}, "not fit together|rules disagree|has shape"),
        ({VIEW: np.full((3, 8), np.nan)}, "must be finite numbers"),
        ({VIEW: np.full((3, 8), 1e300)}, "must be finite numbers"),
        ({VIEW: np.ones((3, 8), dtype=np.int64)}, "must not be of type int64"),
        ({"rule.offsets": np.ones((3, 1))}, "do not fit together"),
        ({"rule.offsets": np.array([0, np.nan, 0])}, "must be finite"),
        ({"rule.view0.normalize": np.empty(0, dtype=np.uint8)}, "not a complete saved model"),
        ({"initial.view0.weights": np.ones((3, 9))}, "its two rules disagree"),
        ({"rule.distributions": np.eye(3)}, "its two rules disagree"),
        ({"anchors": None}, "anchors and rule do not fit together"),
        ({"anchors": np.ones((3, 9))}, r"anchors must have shape \(3, 8\)"),
        (words(-1, 5), "its words are not ascending columns"),
        (words(5, 5), "its words are not ascending columns"),
        (words(9, 5), "its words are not ascending columns"),
        (words(5, 1 << 40), "its words are not ascending columns"),
        (words(5), "word weights of a rule disagree"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_in_spite_of_their_hash(saved, changes, message):
    tamper_arrays(saved, **changes)
    assert_refused(saved, message)


def test_distributions_must_be_probabilities_of_the_labels(tmp_path):
    save(tmp_path / "model", encoder=CosineScorer())
    for rows in (np.eye(3) * 2, -np.eye(3), np.ones((3, 4)) / 4):
        tamper_arrays(tmp_path / "model", **{"rule.distributions": rows})
        with pytest.raises(ModelError, match="must be probabilities of the labels"):
            ZeroShotClassifier.load(tmp_path / "model", encoder=CosineScorer())


def places(value, path=()):
    """Paths to every value in settings."""
    yield path
    for key, item in value.items() if isinstance(value, dict) else ():
        yield from places(item, (*path, key))
    for key, item in enumerate(value) if isinstance(value, list) else ():
        yield from places(item, (*path, key))


def test_any_value_anywhere_is_refused_or_harmless(saved):
    original = read_settings(saved)
    hostile = [None, True, -1, 10**400, 1e308, "", "\ud800", "x" * 500, [], {}, [[[]]], ["a", None]]
    for path in list(places(original))[1:]:
        for value in (*hostile, ...):
            content = copy.deepcopy(original)
            parent = content
            for key in path[:-1]:
                parent = parent[key]
            if value is ...:
                del parent[path[-1]]
            else:
                parent[path[-1]] = value
            write_settings(saved, content)
            with contextlib.suppress(ModelError):
                proba = load(saved).predict_proba(MIXED)
                assert np.isfinite(proba).all(), (path, value)


# Encoders


@pytest.mark.parametrize(
    "spec", ["glove:/some/file", "hf:name", "static:folder", "static+glove:x", "2*hf:x", "unknown"]
)
def test_an_encoder_that_reads_files_must_be_named_by_the_user(saved, tmp_path, spec):
    tamper(saved, encoder=spec)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ModelError, match="name it: load"):
        ZeroShotClassifier.load(saved)
    assert sorted(tmp_path.rglob("*")) == before
    assert load(saved).fitted_.n_labels == 3


def test_an_encoder_object_must_be_given_again(saved):
    with pytest.raises(ModelError, match=r"HashingEncoder; give it to load\(path, encoder=…\)"):
        ZeroShotClassifier.load(saved)
    with pytest.raises(ModelError, match="HashingEncoder; this one is static wordllama"):
        ZeroShotClassifier.load(saved, encoder=static())
    with pytest.raises(ArrayError, match="n_dims=8"):
        ZeroShotClassifier.load(saved, encoder=HashingEncoder(9)).predict(NEW)


def test_a_model_can_be_read_while_it_is_replaced(tmp_path):
    saved = tmp_path / "model"
    models = [ZeroShotClassifier(LABELS, encoder="static").fit(TEXTS[:n]) for n in (3, 4)]

    models[0].save(saved)

    enough = Event()

    def replace_often():
        number = 0
        while not enough.is_set():
            number += 1
            models[number % 2].save(saved, overwrite=True)
        return number

    with ThreadPoolExecutor(1) as pool:
        replacing = pool.submit(replace_often)
        try:
            for _ in range(20):
                ZeroShotClassifier.load(saved)
        finally:
            enough.set()
        assert replacing.result() > 0
    assert [each.name for each in saved.parent.iterdir()] == [saved.name]


def test_a_reference_that_does_not_fit_is_refused(saved):
    reference = read_settings(saved)["reference"]
    for changed in (reference | {"confidence": "high"}, {"n_compared": 3}, [1]):
        tamper(saved, reference=changed)
        assert_refused(saved, match="not a complete saved model")
    tamper(saved, reference=reference)
    assert load(saved).fitted_.reference.known_words == reference["known_words"]
    tamper_arrays(saved, **{"reference.levels": np.zeros(3)})
    assert_refused(saved, match="its reference does not fit")
