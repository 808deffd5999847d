"""Accuracy against CPU seconds of a strong encoder that reads a part of the documents.

    python -m benchmarks.student --data DIR --cache VECTORS
        [--write docs/encoders-measured.md] [--picture docs/strong-share.png]

For shares of the documents that the encoder reads beside the sample (`--strong-share`), the accuracy
of the default method, and of the student alone on the documents that the encoder did not read. The
vectors are cached, so the CPU seconds of a run are those of the run with the cache and, for every
document that is read, those of a document of a random 300 that are encoded without it. The truth is
used to report, never to choose.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from benchmarks.four_datasets import data_parser
from benchmarks.measuring import markdown, publish, timed
from reproduction.documents import read_documents
from reproduction.names import label_set
from ulr.classifier import Settings, fit
from ulr.encoders import Encoder, encode_texts, load_encoder

SHARES = (0.0, 0.1, 0.25, 0.5, 1.0)
SETS = ("agnews", "dbpedia14", "yahoo")
Curve = list[tuple[float, float, float, float]]  # share, CPU seconds, accuracy, that of the student


def seconds_per_document(encoder: Encoder, texts: list[str]) -> float:
    """CPU seconds that the encoder takes for a document."""
    some = [texts[i] for i in np.random.default_rng(0).permutation(len(texts))[:300].tolist()]
    return timed(lambda: encode_texts(encoder, some)).cpu / len(some)


def curve(texts: list[str], truth: np.ndarray, name: str, encoder: Encoder, cache: str) -> Curve:
    """Accuracy and CPU seconds at every share."""
    per_document, found = seconds_per_document(encoder, texts), []
    for strong_share in SHARES:
        settings = Settings(
            label_set(name), encoder=encoder, strong_share=strong_share, cache=cache
        )
        fit(texts, settings)  # fills the cache
        started = time.process_time()
        predictions = fit(texts, settings).predictions
        assert predictions is not None
        right, by_student = predictions.labels == truth, predictions.by_student
        seconds = time.process_time() - started + per_document * int((~by_student).sum())
        student = float(right[by_student].mean()) if by_student.any() else float("nan")
        found.append((strong_share, seconds, float(right.mean()), student))
        print(name, *(f"{value:.3f}" for value in found[-1]), flush=True)
    return found


def draw(curves: dict[str, Curve], path: Path) -> None:
    """A picture of accuracy against CPU seconds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for title, points in curves.items():
        axes.plot([p[1] for p in points], [100 * p[2] for p in points], marker="o", label=title)
        for share, seconds, accuracy, _ in points:
            axes.annotate(
                f"{share:g}", (seconds, 100 * accuracy), (0, 5), textcoords="offset points"
            )
    axes.set(xlabel="CPU seconds", ylabel="accuracy in percent")
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Print the table, and write it and the picture."""
    parser = data_parser(__doc__)
    parser.add_argument("--encoder", default="auto")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    encoder = load_encoder(options.encoder)
    assert isinstance(encoder, Encoder)
    curves, rows = {}, []
    for name in SETS:
        documents = read_documents(name, options.data)
        title, truth = documents.dataset.title, np.array(documents.truth)
        curves[title] = curve(list(documents.texts), truth, name, encoder, options.cache)
        for share, seconds, accuracy, student in curves[title]:
            alone = "" if np.isnan(student) else f"{100 * student:.1f}"
            figures = [f"{share:g}", f"{seconds:.0f}", f"{100 * accuracy:.1f}", alone]
            rows.append([f"{title}, {len(truth):,}", *figures])
    head = "dataset,share read beside the sample,CPU s,accuracy,of the student alone".split(",")
    publish(markdown(head, rows), options.write, "student")
    if options.picture:
        draw(curves, options.picture)


if __name__ == "__main__":
    main()
