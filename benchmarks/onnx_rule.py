"""Whether an exported rule gives in onnxruntime what the classifier gives, on the paper's datasets.

    python -m benchmarks.onnx_rule --data DIR [--write docs/integrations.md]
        [--encoder NAME] [--at-most N]

Prints a Markdown table: documents, labels that differ, the largest difference of a probability, and the
size of the file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

from benchmarks.four_datasets import data_parser
from reproduction.datasets import DATASETS
from reproduction.documents import read_documents
from reproduction.names import label_set
from reproduction.pages import replace_part
from ulr.classifier import Settings, fit
from ulr.integrations import onnx_inputs, to_onnx

_ROWS = 256  # of a call


def row(name: str, data: Path, encoder: str, at_most: int | None) -> str:
    """A row of the table."""
    texts = list(read_documents(name, data, at_most=at_most).texts)
    fitted = fit(texts, Settings(label_set(name), encoder=encoder, strong_share=1.0))
    expected = fitted.predict(texts)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rule.onnx"
        to_onnx(fitted, path)
        megabytes = path.stat().st_size / 1e6
        session = onnxruntime.InferenceSession(str(path))
    n_differ, largest = 0, 0.0
    for start in range(0, len(texts), _ROWS):
        rows = slice(start, start + _ROWS)
        inputs = onnx_inputs(fitted, texts[rows])
        probabilities, labels = session.run(["probabilities", "label"], inputs)
        n_differ += int(np.count_nonzero(labels != expected.labels[rows]))
        difference = np.abs(probabilities - expected.probabilities[rows]).max()
        largest = max(largest, float(difference))
    return f"| {name} | {len(texts):,} | {n_differ} | {largest:.1e} | {megabytes:.1f} |"


def main() -> None:
    """Print the table, and write it into a page."""
    parser = data_parser(__doc__)
    parser.add_argument("--encoder", default="static")
    parser.add_argument("--at-most", type=int, help="documents of a dataset")
    given = parser.parse_args()
    lines = [
        "| dataset | documents | labels that differ | largest difference | MB |",
        "|---|---|---|---|---|",
        *(row(name, given.data, given.encoder, given.at_most) for name in DATASETS),
    ]
    table = "\n".join(lines)
    print(table)
    if given.write:
        replace_part(given.write, "onnx", table)


if __name__ == "__main__":
    main()
