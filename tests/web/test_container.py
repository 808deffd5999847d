"""What the Dockerfile starts works without rights, and writes to the temporary folder only."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
if os.name == "nt":
    pytest.skip("containers run Linux", allow_module_level=True)

DOCKERFILE = (Path(__file__).parent.parent.parent / "Dockerfile").read_text()


def instruction(name):
    """The command in an instruction of the Dockerfile."""
    return json.loads(re.search(rf"^{name}.*?(\[.*\])$", DOCKERFILE, re.M)[1])


def test_the_server_of_the_container_runs_without_rights_and_with_a_read_only_home(tmp_path):
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir(mode=0o555)
    temporary.mkdir(mode=0o700)
    without_rights = []
    if os.getuid() == 0:  # for whom nothing is read-only
        without_rights = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is needed to run without the rights of root")
    touch = subprocess.run([*without_rights, "touch", home / "file"], capture_output=True)
    assert touch.returncode != 0
    program, *arguments = instruction("ENTRYPOINT")
    assert program == "ulr"
    command = [
        *without_rights,
        sys.executable,
        "-m",
        "ulr",
        *arguments,
        "--port",
        "0",
        "--encoder",
        "static",
    ]
    places = {"HOME": str(home), "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
    environment = os.environ | places | {"ULR_TOKEN": "secret"}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment, cwd="/"
    ) as server:
        try:
            port = re.search(r"http://0\.0\.0\.0:(\d+)/", server.stderr.readline())[1]
            check = instruction("HEALTHCHECK")[1:]
            check = [sys.executable, check[0], check[1].replace("8321", port)]
            assert subprocess.run(check).returncode == 0
            address = f"http://127.0.0.1:{port}/api"
            key = {"authorization": "Bearer secret"}
            assert httpx.get(f"{address}/status").status_code == 401
            upload = b"text\nThe team won the match\nThe bank's profit rose\n"
            answer = httpx.post(f"{address}/sessions?name=a.csv", content=upload, headers=key)
            assert answer.status_code == 201
        finally:
            server.terminate()
            server.wait(20)
    assert subprocess.run(check, capture_output=True).returncode != 0
    assert list(home.iterdir()) == []
    assert list(temporary.iterdir()) == []
