"""Partitioned documents about a few topics, and jobs over them."""

import csv
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq

from ulr.classifier import Settings
from ulr.distributed import classify_partitions, find_partitions, open_first
from ulr.jobs import Documents, Output, classify
from ulr.tables import open_table

LABELS = ["sports", "business", "weather"]
TOPICS = {
    "sports": "football tennis athletes goal match striker coach team penalty".split(),
    "business": "money banks trade shops bank profit shares loan market investor".split(),
    "weather": "rain storm sunshine fog snow wind cloud forecast heavy cold".split(),
}
OTHERS = "the of on and scored fell twice trip hotel".split()
N_SAMPLED = 300


def documents(count):
    """Texts with words of a topic, of others and of none; some are empty."""
    draw = random.Random(0)
    texts = []
    for _ in range(count):
        topic = draw.choice(LABELS)
        words = [
            draw.choice(TOPICS[topic if draw.random() < 0.7 else draw.choice(LABELS)])
            if draw.random() < 0.6
            else draw.choice(OTHERS)
            for _ in range(draw.randint(3, 9))
        ]
        texts.append(" ".join(words) if draw.random() < 0.98 else "")
    return texts


def write_partitions(folder, sizes, ending="jsonl", texts=None):
    """Write consecutive documents into files of some sizes."""
    folder.mkdir()
    texts = documents(sum(sizes)) if texts is None else texts
    start = 0
    for number, size in enumerate(sizes):
        rows = [{"id": i, "text": texts[i]} for i in range(start, start + size)]
        path = folder / f"part-{number:03}.{ending}"
        if ending == "parquet":
            schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
            pq.write_table(pa.Table.from_pylist(rows, schema), path)
        elif ending == "csv":
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, ["id", "text"])
                writer.writeheader()
                writer.writerows(rows)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        start += size
    return folder


def new_settings(encoder, **settings):
    return Settings(LABELS, encoder=encoder, **{"fit_sample": N_SAMPLED} | settings)


def run_single(source, encoder, output, **settings):
    """The same documents in one process."""
    output.mkdir()
    with open_table(str(source)) as table:
        documents, settings = Documents(table, ("text",)), new_settings(encoder, **settings)
        return classify(documents, settings, Output(str(output)))[1]


OPTIONS = "force vectors skip_broken part progress".split()


def run_job(source, encoder, output, workers, files=None, **given):
    """A job over the files of a folder."""
    options = {name: given.pop(name) for name in OPTIONS if name in given}
    files = files or find_partitions([str(source)])
    first = Documents(open_first(files, None, options.get("skip_broken", False)), ("text",))
    settings = new_settings(encoder, **given)
    return classify_partitions(files, first, settings, str(output), workers, **options)[1]


def content(folder):
    """The outputs of a folder by name; Parquet files as rows."""
    return {
        path.name: pq.read_table(path).to_pylist()
        if path.suffix == ".parquet"
        else path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(("_", "."))
    }


def read_rows(path):
    """The rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def labels_by_id(folder):
    """Label of each document in a folder of JSONL files."""
    rows = [row for path in folder.glob("*.jsonl") for row in read_rows(path)]
    return {row["id"]: row["ulr_label"] for row in rows}


class OnStage:
    """Progress that calls a function once, after the first result of a stage."""

    def __init__(self, stage="", action=None):
        self._stage, self._action = stage, action
        self._current, self.called, self.rows = None, False, {}

    def stage(self, name, total=None, unit="documents"):
        self._current = name
        self.rows[name] = 0

    def advance(self, count=1):
        self.rows[self._current] += count
        if self._current == self._stage and not self.called:
            self.called = True
            self._action()
