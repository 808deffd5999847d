"""`ulr encoders` as a table and as JSON."""

import json

from ulr.encoders import ENCODERS


def test_every_encoder_is_shown(command):
    result = command("encoders")
    assert (result.code, result.err) == (0, "")
    for name, kind in ENCODERS.items():
        first = kind.specs(name)[0]
        line = next(line for line in result.out.splitlines() if line.startswith(f"{first} "))
        assert (kind.licence or "") in line
        assert "yes" in line or kind.install in line
    for name, kind in ENCODERS.items():
        assert all(way in result.out for way in kind.specs(name))


def test_every_encoder_is_in_the_json(command):
    listed = json.loads(command("encoders", "--json").out)
    assert list(listed) == list(ENCODERS)
    assert all(
        each["install"].startswith("pip install ")
        for each in listed.values()
        if not each["installed"]
    )
    assert listed["static"]["dimensions"] == 256
    assert listed["hf"]["specs"] == ["hf:FOLDER_OR_NAME"]
