"""`ulr encoders` as a table and as JSON."""

import json

from ulr.encoders import ENCODERS, load_encoder


def test_every_encoder_is_shown(command):
    result = command("encoders")
    assert (result.code, result.err) == (0, "")
    for name, kind in ENCODERS.items():
        first = kind.specs(name)[0]
        line = next(line for line in result.out.splitlines() if line.startswith(f"{first} "))
        assert (kind.licence or "") in line
        assert ("yes" if kind.installed else kind.extra or "download") in line
        assert kind.installed or f"  {kind.install}\n" in result.out
    for name, kind in ENCODERS.items():
        assert all(way in result.out for way in kind.specs(name))


def test_every_encoder_is_in_the_json(command):
    listed = json.loads(command("encoders", "--json").out)
    assert list(listed) == list(ENCODERS)
    assert all(
        each["install"].startswith(("pip install ", "ulr encoders download "))
        for each in listed.values()
        if not each["installed"]
    )
    assert listed["static"]["dimensions"] == 256
    assert listed["hf"]["specs"] == ["hf:FOLDER_OR_NAME"]


def test_the_summary_names_what_best_was(command, tmp_path):
    file = tmp_path / "texts.csv"
    file.write_text("text\na late goal\nrain and wind\nthe striker scored\nsunny spells\n")
    given = (file, "--labels", "sports, weather", "--encoder", "auto")
    used = load_encoder("auto").spec
    assert json.loads(command("classify", *given, "--json").out)["encoder"] == used
    assert f"4 documents, 2 labels; encoder {used};" in command("classify", *given).out
