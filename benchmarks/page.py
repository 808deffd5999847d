"""Seconds and CPU seconds from six corrections on the page to the result that the page shows.

    python -m benchmarks.page --data DIR [--encoder NAME] [--cache VECTORS]

The API is called within this process. The documents are 10,000 of AG News and DBpedia-14, with the
labels of AG News; which labels the corrections give does not matter for the time.
"""

from __future__ import annotations

import io
import time
from typing import Any

from starlette.testclient import TestClient

from benchmarks.four_datasets import data_parser
from reproduction.documents import read_documents
from reproduction.names import label_set
from ulr import load_encoder
from ulr.classifier import Settings, text_encoder
from ulr.web import ServerSettings, create_app

ROWS, CORRECTIONS, ROUNDS = 10_000, 6, 5


def run(client: TestClient, path: str, labels: list[Any]) -> tuple[dict[str, Any], str]:
    """Classify, wait, and get what the page shows."""
    started, cpu = time.perf_counter(), time.process_time()
    client.post(f"{path}/run", json={"columns": ["text"], "labels": labels}).raise_for_status()
    while client.get(f"{path}/job").json()["state"] in ("waiting", "running"):
        time.sleep(0.01)
    view = client.get(f"{path}/view").raise_for_status().json()
    seconds, used = time.perf_counter() - started, time.process_time() - cpu
    return view, f"{seconds:.2f} | {used:.2f}"


def main() -> None:
    """Print a Markdown table."""
    parser = data_parser(__doc__)
    parser.add_argument("--encoder", default="static")
    options = parser.parse_args()
    texts = [
        text
        for name in ("agnews", "dbpedia14")
        for text in read_documents(name, options.data).texts
    ]
    lines = io.StringIO()
    lines.writelines(f"{' '.join(text.split())}\n" for text in texts[:ROWS])
    names = label_set("agnews")
    encoder = load_encoder(options.encoder)
    cached = text_encoder(Settings(names, encoder=encoder, cache=options.cache))
    print("| run | seconds | CPU seconds |\n|---|---:|---:|")
    with TestClient(
        create_app(ServerSettings(encoder=cached)), base_url="http://localhost"
    ) as client:
        content = lines.getvalue().encode()
        info = client.post("/api/sessions", params={"name": "a.txt"}, content=content).json()
        path = f"/api/sessions/{info['id']}"
        view, figures = run(client, path, [{"name": name} for name in names.names])
        print(f"| first | {figures} |")
        for number in range(1, ROUNDS + 1):
            for i in view["next"][:CORRECTIONS]:
                correction = {"rows": [view["documents"]["row"][i]], "label": names.names[0]}
                client.post(f"{path}/corrections", json=correction).raise_for_status()
            view, figures = run(client, path, client.get(path).json()["labels"])
            print(f"| after {number * CORRECTIONS} corrections | {figures} |", flush=True)


if __name__ == "__main__":
    main()
