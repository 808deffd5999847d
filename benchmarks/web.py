"""Load on `ulr serve`: predictions over HTTP beside those in process, and many people at the page.

The server is another process on this computer; the clients are coroutines of this one. Both share
the cores, so the figures are those of a laptop, not of a server with clients elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from ulr import ZeroShotClassifier

TOPICS = {
    "sports": "striker goal coach tennis cup match referee league injury penalty stadium athlete",
    "business": "shares profit bank investors revenue merger bonds dividend market quarter loan",
    "science": "telescope protein neural laboratory physics software planet molecule experiment",
    "weather": "rain storm sunshine fog snow wind cloud forecast heavy cold thunder drought",
}
COMMON = "today people report said new week city early after long about officials".split()


def generated_texts(n: int, seed: int = 0) -> list[str]:
    """Texts of twelve words, some of them from one topic."""
    draw = random.Random(seed)
    topics = [words.split() for words in TOPICS.values()]
    return [
        " ".join(
            draw.choice(topic if draw.random() < 0.5 else COMMON)
            for topic in [draw.choice(topics)] * 12
        )
        for _ in range(n)
    ]


def figures(name: str, seconds: list[float], total: float, each: int = 1) -> str:
    """A row of a table: median and 99th percentile in milliseconds, calls and texts per second."""
    p50, p99 = np.percentile(seconds, [50, 99]) * 1000
    rate = len(seconds) / total
    return f"| {name} | {p50:.1f} | {p99:.1f} | {rate:,.0f} | {rate * each:,.0f} |"


def in_process(classifier: ZeroShotClassifier, texts: list[str], size: int, calls: int) -> str:
    """Latency of `Fitted.predict`."""
    model, seconds = classifier.fitted_.with_settings(n_jobs=1), []
    model.predict(texts[:size])
    started = time.perf_counter()
    for i in range(calls):
        before = time.perf_counter()
        model.predict(texts[i * size : (i + 1) * size])
        seconds.append(time.perf_counter() - before)
    return figures(f"in process, {size} per call", seconds, time.perf_counter() - started, size)


def new_client(address: str) -> httpx.AsyncClient:
    """A client; one for each person, since a pool of many connections is slow."""
    return httpx.AsyncClient(base_url=address, timeout=120, verify=False)


async def over_http(address: str, texts: list[str], size: int, clients: int, calls: int) -> str:
    """Latency of POST /api/predict with some clients at once."""
    seconds: list[float] = []

    async def one(number: int) -> None:
        async with new_client(address) as client:
            for i in range(calls):
                first = (number * calls + i) * size % (len(texts) - size)
                body = {"texts": texts[first : first + size]}
                before = time.perf_counter()
                answer = await client.post("/api/predict", json=body)
                seconds.append(time.perf_counter() - before)
                answer.raise_for_status()

    await one(0)
    seconds.clear()
    started = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(clients)))
    total = time.perf_counter() - started
    name = f"HTTP, {clients} client{'s' if clients > 1 else ''}, {size} per call"
    return figures(name, seconds, total, size)


class Page:
    """People who use the page; every request is timed by kind, and failures are counted."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.seconds: dict[str, list[float]] = {}
        self.failures = 0

    async def ask(
        self, client: httpx.AsyncClient, kind: str, method: str, path: str, **options: Any
    ) -> httpx.Response:
        """Send a request."""
        before = time.perf_counter()
        answer = await client.request(method, path, **options)
        self.seconds.setdefault(kind, []).append(time.perf_counter() - before)
        self.failures += answer.status_code >= 400
        return answer

    async def person(self, number: int, n_rows: int, prefix: str = "") -> None:
        """Upload, classify, correct, classify again, download."""
        table = "\n".join(["text", *generated_texts(n_rows, number)]).encode()
        async with new_client(self._address) as client:

            async def ask(kind: str, method: str, path: str, **options: Any) -> httpx.Response:
                return await self.ask(client, prefix + kind, method, path, **options)

            answer = await ask("upload", "POST", "/api/sessions?name=texts.csv", content=table)
            path = f"/api/sessions/{answer.json()['id']}"
            labels: object = [{"name": name} for name in TOPICS]
            for _ in range(2):
                before = time.perf_counter()
                body = {"columns": ["text"], "labels": labels}
                labels = (await ask("start a run", "POST", f"{path}/run", json=body)).json()[
                    "labels"
                ]
                job, pause = {"state": "waiting"}, 0.04  # as the page does
                while job["state"] in ("waiting", "running"):
                    await asyncio.sleep(pause)
                    pause = min(1.5 * pause, 1.0)
                    job = (await ask("progress", "GET", f"{path}/job")).json()
                self.failures += job["state"] != "done"
                waited = time.perf_counter() - before
                self.seconds.setdefault(prefix + "run until done", []).append(waited)
                await ask("view", "GET", f"{path}/view")
                correction = {"rows": [1], "label": "sports"}
                await ask("correct", "POST", f"{path}/corrections", json=correction)
            await ask("download", "GET", f"{path}/download/table")

    async def disconnect(self) -> None:
        """Send half of an upload and close the connection, ten times."""
        address = httpx.URL(self._address)
        for _ in range(10):
            _, writer = await asyncio.open_connection(address.host, address.port)
            head = "POST /api/sessions?name=a.csv HTTP/1.1\r\nHost: localhost\r\n"
            writer.write(f"{head}Content-Length: 1000000\r\n\r\ntext\nhalf a".encode())
            await writer.drain()
            writer.close()
            await asyncio.sleep(0.2)


async def people(address: str, n_people: int, n_rows: int, large: int) -> list[str]:
    """Many people at once, with a large upload and a client that disconnects beside them."""
    page = Page(address)
    started = time.perf_counter()
    tasks: list[Awaitable[None]] = [page.person(i, n_rows) for i in range(n_people)]
    await asyncio.gather(*tasks, page.person(n_people, large, "large: "), page.disconnect())
    total = time.perf_counter() - started
    lines = ["| request | number | p50 ms | p99 ms |", "|---|---:|---:|---:|"]
    for kind, seconds in page.seconds.items():
        p50, p99 = np.percentile(seconds, [50, 99]) * 1000
        lines.append(f"| {kind} | {len(seconds):,} | {p50:,.0f} | {p99:,.0f} |")
    return [*lines, "", f"{total:.0f} s in all, {page.failures} failed requests."]


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used."""
    user, system = Path(f"/proc/{pid}/stat").read_text().split()[13:15]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> str:
    """Memory of a process now and at most."""
    status = Path(f"/proc/{pid}/status").read_text()
    now, most = (int(re.search(rf"{key}:\s+(\d+)", status)[1]) for key in ("VmRSS", "VmHWM"))  # type: ignore[index]
    return f"{now / 1024:,.0f} MB, at most {most / 1024:,.0f} MB"


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--rows", type=int, default=200, help="rows of each person's table")
    parser.add_argument("--large", type=int, default=100_000, help="rows of the large table")
    chosen = parser.parse_args()
    texts = generated_texts(20_000)
    classifier = ZeroShotClassifier(list(TOPICS)).fit(texts)
    head = ["| | p50 ms | p99 ms | calls/s | texts/s |", "|---|---:|---:|---:|---:|"]
    print("\n".join([*head, in_process(classifier, texts, 1, 2_000)]))
    print(in_process(classifier, texts, 100, 200))
    with tempfile.TemporaryDirectory() as folder:
        classifier.save(Path(folder) / "model")
        process = subprocess.Popen(
            [sys.executable, "-m", "ulr", "serve", "--port", "0", "--model", f"{folder}/model"],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        try:
            address = re.search(r"http://\S+/", process.stderr.readline())[0]  # type: ignore[index]
            run: Callable[..., str] = lambda *how: asyncio.run(over_http(address, texts, *how))  # noqa: E731
            before = cpu_seconds(process.pid)
            print(run(1, 1, 1_000))
            spent = (cpu_seconds(process.pid) - before) / 2_000  # half of them warm up
            print(run(1, 50, 60), run(100, 1, 100), run(100, 50, 6), sep="\n")
            print(f"\nCPU time of a request with one text: {1000 * spent:.1f} ms")
            print(f"Server after predictions: {memory(process.pid)}\n")
            print(*asyncio.run(people(address, chosen.people, chosen.rows, chosen.large)), sep="\n")
            print(f"Server with {chosen.people + 1} sessions: {memory(process.pid)}")
        finally:
            process.terminate()
            process.wait(20)
            print(process.stderr.read())


if __name__ == "__main__":
    main()
