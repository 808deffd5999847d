"""`ulr serve` as a process: what it prints, and what is left when it stops."""

import os
import re
import signal
import socket
import subprocess
import sys

import pytest

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")


@pytest.fixture
def serve(tmp_path):
    """Start `ulr serve`; returns the process, what it said and the folder for temporary files."""
    processes = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "ulr", "serve", "--port", "0", *map(str, arguments)],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(tmp_path)},
        )
        processes.append(process)
        return process, process.stderr.readline(), tmp_path

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait(10)
        process.stderr.close()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_uploads_are_deleted_when_the_server_stops(serve, how):
    process, said, folder = serve("--encoder", "static")
    assert "only programs on this computer" in said
    address = re.search(r"http://127\.0\.0\.1:\d+/", said)[0]
    answer = httpx.post(f"{address}api/sessions?name=a.csv", content=b"text\na\nb\n")
    assert answer.status_code == 201
    assert [file.name for file in folder.rglob("*") if file.is_file()] == ["data"]
    process.send_signal(how)
    assert process.wait(20) == 130
    assert "Traceback" not in process.stderr.read()
    assert list(folder.iterdir()) == []


def test_a_saved_model_is_served(serve, classified):
    _, said, _ = serve("--model", classified.model)
    address = re.search(r"http://\S+/", said)[0]
    answer = httpx.post(f"{address}api/predict", json={"texts": "my parcel never arrived"})
    assert answer.json()["predictions"][0]["label"] == "delivery"


def test_an_address_that_others_reach_gets_a_token(serve):
    _, said, _ = serve("--host", "0.0.0.0")
    assert "other computers can reach it" in said
    port, token = re.search(r"http://0\.0\.0\.0:(\d+)/\?token=(\S{20,}) ", said).groups()
    address = f"http://127.0.0.1:{port}/"
    assert httpx.get(f"{address}api/status").status_code == 401
    headers = {"authorization": f"Bearer {token}"}
    assert httpx.get(f"{address}api/status", headers=headers).status_code == 200


def test_a_taken_port_is_one_sentence(command):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = command("serve", "--port", taken.getsockname()[1])
    assert result.code == 1
    assert "--port" in result.err


def test_a_missing_package_names_the_extra():
    code = (
        "import sys; sys.modules['fastapi'] = None; sys.argv = ['ulr', 'serve', '--port', '0']; "
        "from ulr.cli import main; main()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert run.returncode == 1
    assert run.stderr.startswith("ulr: 'fastapi' is not installed; ")
    assert "[web]'" in run.stderr
    assert run.stderr.count("\n") == 1
