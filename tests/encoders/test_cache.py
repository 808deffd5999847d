"""The vector cache: lookups, sharing, interruption, damage, and disks that are full."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from letters import TEXTS, VECTORS, Letters
from python_process import run_python

from ulr.encoders import CachedEncoder, clear_cache, encode_texts, inspect_cache
from ulr.errors import EncoderError, UlrWarning


def test_a_second_run_encodes_nothing(tmp_path):
    first, second = Letters(), Letters()
    np.testing.assert_array_equal(encode_texts(CachedEncoder(first, tmp_path), TEXTS), VECTORS)
    cached = CachedEncoder(second, tmp_path)
    np.testing.assert_array_equal(encode_texts(cached, TEXTS[::-1]), VECTORS[::-1])
    assert (len(first.asked), second.asked) == (5, [])
    assert (cached.found, cached.encoded, cached.disabled) == (len(TEXTS), 0, False)


def test_missing_texts_are_encoded_once_in_their_order(tmp_path):
    encoder = Letters()
    cached = CachedEncoder(encoder, tmp_path)
    cached.encode(["a", "c", "a"])
    vectors = cached.encode(["d", "c", "b", "a", "d"])
    assert encoder.asked == [["a", "c"], ["d", "b"]]
    np.testing.assert_array_equal(vectors, Letters().encode(["d", "c", "b", "a", "d"]))
    vectors[:] = 0  # a copy, as of any encoder


def test_encoders_share_a_cache_but_no_vectors(tmp_path):
    one, two, other = Letters(), Letters(), Letters()
    other.fingerprint = "other letters"
    first, second = CachedEncoder(one, tmp_path), CachedEncoder(two, tmp_path)
    first.encode(["a"])
    second.encode(["a", "b"])
    first.encode(["b", "a"])
    CachedEncoder(other, tmp_path).encode(["a"])
    assert (one.asked, two.asked, other.asked) == ([["a"]], [["b"]], [["a"]])
    assert [entry.encoder for entry in inspect_cache(tmp_path)] == ["letters", "other letters"]


def change_byte(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)


def test_a_vector_with_a_damaged_byte_is_encoded_again(tmp_path):
    encode_texts(CachedEncoder(Letters(), tmp_path), TEXTS)
    path = tmp_path / "vectors.sqlite"
    change_byte(path, path.read_bytes().index(VECTORS[7].tobytes()) + 50)
    assert inspect_cache(tmp_path)[0].damaged_megabytes == pytest.approx(26 * 4 / 1e6)
    encoder = Letters()
    np.testing.assert_array_equal(encode_texts(CachedEncoder(encoder, tmp_path), TEXTS), VECTORS)
    assert encoder.asked == [[TEXTS[7]]]
    assert inspect_cache(tmp_path)[0].damaged_megabytes == 0


@pytest.mark.filterwarnings("ignore:the cache .* cannot be used:ulr.errors.UlrWarning")
@pytest.mark.parametrize("place", np.random.default_rng(0).uniform(size=40).round(4).tolist())
def test_vectors_are_right_wherever_a_byte_is_damaged(tmp_path, place):
    encode_texts(CachedEncoder(Letters(), tmp_path), TEXTS)
    path = tmp_path / "vectors.sqlite"
    # The beginning, where all is structure, more often than the rest.
    change_byte(path, int(place**4 * path.stat().st_size))
    for _ in range(2):
        found = encode_texts(CachedEncoder(Letters(), tmp_path), TEXTS)
        np.testing.assert_array_equal(found, VECTORS)


@pytest.mark.parametrize("left", [0, 100, 40_000])
def test_a_file_that_is_cut_or_replaced_is_no_obstacle(tmp_path, left):
    encode_texts(CachedEncoder(Letters(), tmp_path), TEXTS)
    path = tmp_path / "vectors.sqlite"
    path.write_bytes(path.read_bytes()[:left])
    warning = r"the cache .* cannot be used \(.*\); texts are encoded without it. .* --clear"
    if left:
        with pytest.warns(UlrWarning, match=warning) as warned:
            found = encode_texts(CachedEncoder(Letters(), tmp_path), TEXTS)
        assert len(warned) == 1
        (entry,) = inspect_cache(tmp_path)
        assert (entry.texts, entry.damaged_megabytes) == (0, entry.megabytes)
        assert clear_cache(tmp_path) == 1
    else:
        found = encode_texts(CachedEncoder(Letters(), tmp_path), TEXTS)
    np.testing.assert_array_equal(found, VECTORS)
    cached = CachedEncoder(Letters(), tmp_path)
    np.testing.assert_array_equal(encode_texts(cached, TEXTS), VECTORS)
    assert not cached.disabled


WORKER = """
import sys, time
import numpy as np
from ulr.encoders import CachedEncoder, encode_texts
from letters import TEXTS, Letters

class Slow(Letters):
    def encode(self, texts, /):
        time.sleep(float(sys.argv[2]))
        print(len(texts), flush=True)
        return super().encode(texts)

cached = CachedEncoder(Slow(), sys.argv[1])
np.save(sys.argv[3], encode_texts(cached, TEXTS * 2))
"""


def work(folder, seconds, out):
    command = [sys.executable, "-c", WORKER, str(folder), str(seconds), str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent)


def test_a_killed_run_continues_with_the_same_batches(tmp_path):
    whole = Letters()
    encode_texts(CachedEncoder(whole, tmp_path / "whole"), TEXTS * 2)
    with work(tmp_path / "killed", 0.3, tmp_path / "out.npy") as process:
        for _ in range(3):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "out.npy").exists()
    rest = Letters()
    vectors = encode_texts(CachedEncoder(rest, tmp_path / "killed"), TEXTS * 2)
    np.testing.assert_array_equal(vectors, np.concatenate([VECTORS, VECTORS]))
    assert 2 <= len(whole.asked) - len(rest.asked) <= 3
    assert rest.asked == whole.asked[-len(rest.asked) :]


def test_processes_that_share_a_cache_encode_each_text_once(tmp_path):
    workers = [work(tmp_path / "cache", 0.05, tmp_path / f"{i}.npy") for i in range(3)]
    n_encoded = 0
    for process in workers:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        n_encoded += sum(map(int, out.split()))
    for i in range(3):
        np.testing.assert_array_equal(np.load(tmp_path / f"{i}.npy")[:45], VECTORS)
    (entry,) = inspect_cache(tmp_path / "cache")
    assert (n_encoded, entry.texts, entry.damaged_megabytes) == (len(TEXTS), len(TEXTS), 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_uses_a_connection_of_its_own(tmp_path):
    code = (
        "import os, sys; from ulr.encoders import CachedEncoder; from letters import Letters\n"
        "cached = CachedEncoder(Letters(), sys.argv[1]); cached.encode(['parent'])\n"
        "child = os.fork()\n"
        "cached.encode([f'{child == 0} {i}' for i in range(50)])\n"
        "if child: sys.exit(os.waitpid(child, 0)[1])\n"
    )
    assert run_python("-c", code, tmp_path).returncode == 0
    (entry,) = inspect_cache(tmp_path)
    assert (entry.texts, entry.damaged_megabytes) == (101, 0)


FULL_DISK = """
import resource, sys
import numpy as np
from ulr.encoders import CachedEncoder, encode_texts
from letters import TEXTS, VECTORS, Letters

encoder = CachedEncoder(Letters(), sys.argv[1])
encoder.encode(TEXTS[:5])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
vectors = encode_texts(encoder, TEXTS)
print(np.array_equal(vectors, VECTORS), encoder.disabled, encoder.found, encoder.encoded)
"""


@pytest.mark.parametrize("n_bytes", [1000, 300_000, 10_000_000])
def test_full_disk_disables_the_cache_and_not_the_run(tmp_path, n_bytes):
    pytest.importorskip("resource")
    run = run_python("-c", FULL_DISK, tmp_path, n_bytes)
    is_full = n_bytes < 10_000_000
    assert run.stdout == f"True {is_full} 5 {len(TEXTS)}\n", run.stderr
    assert run.stderr.count("cannot be used") == is_full
    np.testing.assert_array_equal(encode_texts(CachedEncoder(Letters(), tmp_path), TEXTS), VECTORS)
    (entry,) = inspect_cache(tmp_path)
    assert (entry.texts, entry.damaged_megabytes) == (len(TEXTS), 0)


def test_a_deleted_cache_is_disabled_with_one_warning(tmp_path):
    encoder = CachedEncoder(Letters(), tmp_path / "cache")
    encoder.encode(["a"])
    shutil.rmtree(tmp_path / "cache")
    with pytest.warns(UlrWarning, match=r"cannot be used \(it was deleted\)") as warned:
        np.testing.assert_array_equal(encode_texts(encoder, TEXTS), VECTORS)
    assert len(warned) == 1
    assert encoder.disabled


def test_a_cache_that_another_process_keeps_locked_is_still_read(tmp_path):
    CachedEncoder(Letters(), tmp_path).encode(["a"])
    with closing(sqlite3.connect(tmp_path / "vectors.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")
        encoder = Letters()
        CachedEncoder(encoder, tmp_path).encode(["a"])
        assert encoder.asked == []


def test_attributes_are_those_of_the_encoder(tmp_path):
    encoder = Letters()
    cached = CachedEncoder(encoder, tmp_path)
    assert (cached.languages, cached.label_encoder) == (None, None)
    encoder.languages, encoder.truncated = ("en", "de"), 3
    cached = CachedEncoder(encoder, tmp_path)
    assert cached.languages == ("en", "de")
    cached.encode(["a"])
    assert cached.truncated == 3
    cached.encode(["a"])
    assert cached.truncated is None  # unknown, once vectors were found


def test_inspecting_and_clearing(tmp_path):
    (tmp_path / "mine.txt").write_text("not part of the cache")
    assert inspect_cache(tmp_path) == []
    cached = CachedEncoder(Letters(), tmp_path)
    cached.encode(["a", "b"])
    (entry,) = inspect_cache(tmp_path)
    assert (entry.encoder, entry.texts, entry.dimensions) == ("letters", 2, 26)
    assert entry.megabytes == pytest.approx(2 * 26 * 4 / 1e6)
    assert entry.damaged_megabytes == 0
    assert clear_cache(tmp_path) == 1
    assert (inspect_cache(tmp_path), clear_cache(tmp_path)) == ([], 0)
    assert (tmp_path / "mine.txt").exists()
    cached.encode(["a"])
    assert inspect_cache(tmp_path)[0].texts == 1


def test_impossible_caches_are_refused(tmp_path):
    class Nameless:
        def encode(self, texts, /):
            return np.zeros((len(texts), 2), dtype=np.float32)

    with pytest.raises(EncoderError, match="Nameless has none; give it an attribute"):
        CachedEncoder(Nameless(), tmp_path)
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "cache"):
        with pytest.raises(EncoderError, match=r"the cache .* cannot be used: Not a directory\."):
            CachedEncoder(Letters(), folder)
    with pytest.raises(EncoderError, match="there is no cache"):
        inspect_cache(tmp_path / "nowhere")
