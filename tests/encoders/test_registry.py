"""Encoders by name, and objects that are no encoders."""

import numpy as np
import pytest

from ulr import load_encoder
from ulr.encoders import ENCODERS, Encoder, StaticEncoder
from ulr.errors import EncoderError


class Ones:
    def encode(self, texts):
        return np.ones((len(texts), 2))


NAMED = [name for name, kind in ENCODERS.items() if kind.load and name != "best"]


@pytest.mark.parametrize("name", NAMED)
def test_every_name_gives_an_encoder_that_is_saved_by_it(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if not ENCODERS[name].installed:
        pytest.skip(ENCODERS[name].install)
    encoder = load_encoder(name)
    assert isinstance(encoder, Encoder)
    assert encoder.spec == name


def test_the_embedded_encoder_is_static():
    assert isinstance(load_encoder("static"), StaticEncoder)


def test_an_encoder_is_taken_as_it_is():
    encoder = Ones()
    assert load_encoder(encoder) is encoder


def test_unknown_names_are_refused():
    with pytest.raises(EncoderError, match=r"encoder must be one of static.*; got 'bert'\."):
        load_encoder("bert")


@pytest.mark.parametrize("spec", ["hf", "hf:", "cross:", "esa"])
def test_names_that_need_more_say_what(spec):
    name = spec.partition(":")[0]
    with pytest.raises(EncoderError, match=rf"encoder must be {name}:F.*; got '{spec}'\."):
        load_encoder(spec)


@pytest.mark.parametrize("spec", [None, 5, Ones, [1.0]])
def test_objects_without_encode_are_refused(spec):
    with pytest.raises(EncoderError, match="an encoder is a name or an object with encode"):
        load_encoder(spec)
