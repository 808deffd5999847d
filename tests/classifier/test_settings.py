"""`Settings` is the only list of parameters: everything else is derived from it."""

import inspect
import pickle
from dataclasses import fields

import pytest

from tiny_task import LABELS, HashingEncoder
from ulr import ZeroShotClassifier
from ulr.classifier import Settings
from ulr.cli.classifier_options import ClassifierOptions
from ulr.errors import LabelError, ParameterError


def parameters(callable_):
    return {
        name: each.default
        for name, each in inspect.signature(callable_).parameters.items()
        if name != "self"
    }


def test_the_estimator_has_the_parameters_and_defaults_of_settings():
    assert parameters(ZeroShotClassifier.__init__) == parameters(Settings)
    assert list(ZeroShotClassifier(LABELS, encoder="static").get_params()) == sorted(
        parameters(Settings)
    )
    with pytest.raises(TypeError, match="colour"):
        ZeroShotClassifier(LABELS, colour="red", encoder="static")


def test_every_parameter_is_an_option_of_the_command_line():
    options = {each.name for each in fields(ClassifierOptions)}
    # A file has no y; the options of a language model make an adviser.
    others = {"ignore_y", "adviser", "adviser_budget"}
    assert {each.name for each in fields(Settings)} - options == others


def test_settings_are_frozen_validated_and_picklable():
    settings = Settings(LABELS, encoder="static", extra_labels=["cooking"])
    assert settings.label_set.names == tuple(LABELS)
    assert pickle.loads(pickle.dumps(settings)) == settings
    with pytest.raises(AttributeError, match="cannot assign"):
        settings.method = "ulr"
    with pytest.raises(LabelError, match="at least 2 labels"):
        Settings(["one"], encoder="static")
    with pytest.raises(ParameterError, match="random_state must be an integer of at least 0"):
        Settings(LABELS, random_state=-1, encoder=HashingEncoder())
