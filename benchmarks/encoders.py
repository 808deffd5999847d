"""Speed of the encoders on one core, and accuracy of combinations of them.

    python -m benchmarks.encoders speed --data DIR [--encoder SPEC ...]
        [--write docs/encoders-measured.md]
    python -m benchmarks.encoders accuracy --data DIR --cache VECTORS [--encoder NAME ...]
        [--write docs/encoders-measured.md]

"speed" encodes 2,000 texts of AG News and 500 posts of 20 Newsgroups, drawn with a fixed seed, on
one core. The rate is texts per second of processor time, so that other processes matter little.

"accuracy" joins the encoders in every combination, on the six datasets of `scenarios.py`, of each
at most 10,000 documents. Weights are equal, or estimated without labels: an encoder's weight is the
log odds with which its own refined predictions agree with those of the combination with equal
weights. True labels are only used to report.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize

from benchmarks.encode import agnews, newsgroups
from benchmarks.measuring import markdown, publish, timed
from benchmarks.scenarios import (
    NEAREST,
    PAPER,
    SIX,
    WORDS,
    Labels,
    Vectors,
    mean,
    read_corpus,
)
from ulr.classifier import count_words
from ulr.encoders import CachedEncoder, Encoder, encode_texts, label_encoder, load_encoder
from ulr.refinement import refine

MOST_DOCUMENTS = 10_000
SPEED = ("static", "potion", "minilm", "minilm-int8", "bge-small", "use-multilingual")
JOINED = ("static", "minilm", "bge-small", "use-multilingual")
METHODS = (NEAREST, PAPER, WORDS)


def drawn(n_all: int, n_drawn: int) -> Labels:
    """Rows of a sample, in their order."""
    return np.sort(np.random.default_rng(900).permutation(n_all)[:n_drawn])


def load(spec: str, cache: Path | None = None) -> Encoder:
    """An encoder of texts, with a cache if given."""
    encoder = load_encoder(spec)
    if not isinstance(encoder, Encoder):
        raise SystemExit(f"{spec} has no vectors.")
    return encoder if cache is None else CachedEncoder(encoder, cache)


# --- Speed


def rate(encoder: Encoder, texts: list[str], repeats: int) -> float:
    """Texts per second of processor time, the best of some runs."""
    return len(texts) / timed(lambda: encode_texts(encoder, texts), repeats).cpu


def speed_table(data: Path, specs: Sequence[str], repeats: int) -> str:
    """Texts per second of each encoder."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    news, posts = agnews(data), newsgroups(data)
    samples = (
        [news[row] for row in drawn(len(news), 2_000)],
        [posts[row] for row in drawn(len(posts), 500)],
    )
    rows = []
    for spec in specs:
        rates = []
        for texts in samples:
            encoder = load(spec)  # a new one each time, which has met no text before
            encode_texts(encoder, texts[:50])
            rates.append(rate(encoder, texts, repeats))
        rows.append([f"`{spec}`", *(f"{each:,.0f}" for each in rates)])
        print(rows[-1], flush=True)
    return markdown(["encoder", "AG News, texts/s", "20 Newsgroups, texts/s"], rows)


# --- Accuracy


@dataclass(frozen=True, eq=False)
class Corpus:
    """A dataset encoded by several encoders.

    Attributes
    ----------
    documents, anchors
        By encoder, (n_documents, n_dims) and (n_labels, n_dims), of unit length.
    truth
        (n_documents,) label indices.
    counts
        (n_documents, n_words) word counts.
    known
        Predictions so far.
    """

    documents: dict[str, NDArray[np.float64]]
    anchors: dict[str, NDArray[np.float64]]
    truth: Labels
    counts: csr_matrix
    known: dict[str, Labels] = field(default_factory=dict)

    def joined(self, names: Sequence[str], weights: Sequence[float]) -> tuple[Vectors, Vectors]:
        """Documents and anchors of a combination."""
        scales = np.sqrt(np.array(weights) / sum(weights))
        return tuple(  # type: ignore[return-value]
            np.concatenate(
                [s * each[n] for s, n in zip(scales, names, strict=True)], axis=1
            ).astype(np.float32)
            for each in (self.documents, self.anchors)
        )

    def predict(self, names: Sequence[str], weights: Sequence[float], method: str) -> Labels:
        """Predictions of a method on the vectors of a combination."""
        key = f"{names} {weights} {method}"
        if key not in self.known:
            documents, anchors = self.joined(names, weights)
            if method == WORDS:
                found = refine(documents, anchors, word_counts=self.counts)
            else:
                found = refine(documents, anchors, method="none" if method == NEAREST else "ulr")
            self.known[key] = found.predictions
        return self.known[key]

    def estimated(self, names: Sequence[str]) -> list[float]:
        """Weights from the agreement of each encoder alone with all of them."""
        together = self.predict(names, [1.0] * len(names), WORDS)
        n_labels, weights = len(self.anchors[names[0]]), []
        for name in names:
            agreement = float((self.predict((name,), [1.0], WORDS) == together).mean())
            odds = agreement * (n_labels - 1) / max(1.0 - agreement, 1e-3)
            weights.append(max(float(np.log(odds)), 0.1))
        return weights


def read(title: str, data: Path, encoders: dict[str, Encoder]) -> Corpus:
    """A dataset, encoded by every encoder."""
    texts, truth, phrases = read_corpus(title, data)
    rows = drawn(len(texts), MOST_DOCUMENTS)
    texts = [texts[row] for row in rows]
    documents, anchors = {}, {}
    for name, encoder in encoders.items():
        documents[name] = normalize(encode_texts(encoder, texts).astype(np.float64))
        labels = encode_texts(label_encoder(encoder), phrases)
        anchors[name] = normalize(labels.astype(np.float64))
        print(f"{title}: {len(texts):,} documents by {name}", flush=True)
    return Corpus(documents, anchors, truth[rows], count_words(texts))


def all_combinations(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Every encoder alone, then every two, and so on."""
    for size in range(1, len(names) + 1):
        yield from combinations(names, size)


def accuracy_table(data: Path, cache: Path | None, names: Sequence[str]) -> str:
    """Accuracy of every combination on every dataset."""
    encoders = {name: load(name, cache) for name in names}
    found: dict[tuple[str, str], list[list[float]]] = {}
    for title in SIX:
        corpus = read(title, data, encoders)
        for combination in all_combinations(names):
            weightings = {"equal": [1.0] * len(combination)}
            if len(combination) > 1:
                weightings["estimated"] = corpus.estimated(combination)
            for weighting, weights in weightings.items():
                accuracy = [
                    100.0 * float((corpus.predict(combination, weights, m) == corpus.truth).mean())
                    for m in METHODS
                ]
                found.setdefault(("+".join(combination), weighting), []).append(accuracy)
                shown = ", ".join(f"{weight:.2f}" for weight in weights)
                print(title, "+".join(combination), shown, np.round(accuracy, 1), flush=True)
    rows = []
    for combination in all_combinations(names):
        joined = "+".join(combination)
        equal, estimated = (found.get((joined, which)) for which in ("equal", "estimated"))
        figures = [*equal, average(equal)] if equal else []
        figures += [average(estimated)] if estimated else []
        cells = [" / ".join(f"{value:.1f}" for value in each) for each in figures]
        rows.append([f"`{joined}`", *cells, *([] if estimated else [""])])
    return markdown(["encoders", *SIX, "mean", "mean, estimated weights"], rows)


def average(figures: list[list[float]]) -> list[float]:
    """Mean accuracy of each method over the datasets."""
    return [mean([each[i] for each in figures]) for i in range(len(METHODS))]


def main() -> None:
    """Measure, print, and write the table where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["speed", "accuracy"])
    default = os.environ.get("ULR_DATA")
    parser.add_argument("--data", default=default, required=default is None, type=Path)
    parser.add_argument("--encoder", action="append", help="may be given several times")
    parser.add_argument("--cache", type=Path, help="folder of vectors")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--write", type=Path, help="Markdown file whose part is replaced")
    options = parser.parse_args()
    if options.what == "speed":
        table = speed_table(options.data, options.encoder or SPEED, options.repeats)
    else:
        table = accuracy_table(options.data, options.cache, options.encoder or JOINED)
    publish(table, options.write, options.what)


if __name__ == "__main__":
    main()
