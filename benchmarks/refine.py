"""How fast the refinement is, beside what people would otherwise call, in one run.

    python benchmarks/refine.py [--write docs/performance.md] [--repeats 3] [--threads N] [--quick]

Data are unit vectors made here: class means, a low-rank topical spread, noise and a common
offset, with labels some way off the class means; probabilities for Jensen-Shannon likewise.
Every rival gets the same start, as many passes as ours needed and the same threads; scikit-learn
stops when nothing changes, so where it made fewer passes the missing ones are added at its pace
between the first and the last. All take turns, and times are the best of the repeats, since other
work on a shared machine only ever adds to them.

- "plain" is the same refinement, every document scored in every pass, blocked NumPy in float32
- "authors" is the authors' formula, re-implemented: one distance a (document, label) pair. Where
  it would take minutes it is timed on some documents and scaled, which the table says.
- "limit" is one pass: the documents' bytes at the measured bandwidth, or its multiplications at
  the measured peak, whichever is longer
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import jensenshannon
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ulr.refine import Pass, loops, refine, refine_many

Single = NDArray[np.float32]
SIZES = (
    (7_600, 4, 384),
    (60_000, 10, 300),
    (70_000, 14, 768),
    (1_000_000, 20, 384),
    (1_000_000, 100, 384),
)
DIVERGENCE_SIZES = ((70_000, 14), (100_000, 150))
_TURNS_SECONDS, _REST_SECONDS = 12.0, 0.1


@dataclass
class Row:
    """One line of the report."""

    case: str
    passes: int
    scored: float
    seconds: dict[str, float] = field(default_factory=dict)
    notes: str = ""


def make_vectors(n: int, n_labels: int, n_dims: int, seed: int = 0) -> tuple[Single, Single]:
    """Unit vectors like those of sentence encoders, and label vectors near their classes."""
    random = np.random.default_rng(seed)
    scale = np.float32(1 / np.sqrt(n_dims))

    def normal(*shape: int) -> Single:
        return random.standard_normal(shape, dtype=np.float32)

    means, offset = normal(n_labels, n_dims) * scale, normal(n_dims) * scale
    topics = normal(24, n_dims) * scale * np.linspace(1, 0.3, 24, dtype=np.float32)[:, None]
    classes = random.choice(n_labels, n, p=random.dirichlet(np.full(n_labels, 3.0)))
    documents = np.empty((n, n_dims), dtype=np.float32)
    for start in range(0, n, 50_000):
        few = classes[start : start + 50_000]
        block = means[few] + 0.8 * offset + 0.9 * scale * normal(len(few), n_dims)
        block += 0.45 * normal(len(few), 24) @ topics
        documents[start : start + 50_000] = block / np.linalg.norm(block, axis=1, keepdims=True)
    labels = 0.45 * means + 0.8 * offset + 0.8 * scale * normal(n_labels, n_dims)
    labels += 0.6 * normal(n_labels, 24) @ topics
    return documents, labels / np.linalg.norm(labels, axis=1, keepdims=True)


def make_probabilities(n: int, n_labels: int, seed: int = 0) -> NDArray[np.float64]:
    """Probabilities of labels that lean towards a class and towards what it is confused with."""
    random = np.random.default_rng(seed)
    classes = random.integers(n_labels, size=n)
    scores = 1.2 * random.standard_normal((n, n_labels))
    scores += random.standard_normal((n_labels, n_labels))[classes]
    scores[np.arange(n), classes] += 1.5
    return softmax(scores, axis=1)


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """Seconds of the fastest of some runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def best_in_turn(repeats: int, works: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of the fastest run of each of some works, which take turns.

    Works that are over in milliseconds have more turns, so that each meets a quiet moment. There
    is a rest before each: the threads of OpenBLAS and OpenMP stay awake for a while after their
    work, and would slow down whoever comes next.
    """
    seconds = dict.fromkeys(works, float("inf"))
    began, turn = time.perf_counter(), 0
    while turn < repeats or (turn < 40 and time.perf_counter() - began < _TURNS_SECONDS):
        for name, work in works.items():
            time.sleep(_REST_SECONDS)
            seconds[name] = min(seconds[name], best_of(1, work))
        turn += 1
    return seconds


def plain_numpy(documents: Single, labels: Single, passes: int, block: int = 8192) -> None:
    """The l2 refinement with every document in every pass: products, argmin, one-hot sums."""
    n_labels = len(labels)
    centroids, mean = labels, documents.mean(axis=0, dtype=np.float64)
    for _ in range(passes):
        sums, counts = np.zeros(labels.shape), np.zeros(n_labels)
        squares = (centroids**2).sum(axis=1)
        for start in range(0, len(documents), block):
            part = documents[start : start + block]
            nearest = (squares - 2 * part @ centroids.T).argmin(axis=1)
            members = np.zeros((n_labels, len(part)), dtype=np.float32)
            members[nearest, np.arange(len(part))] = 1
            sums += members @ part
            counts += members.sum(axis=1)
        means = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], mean)
        centroids = ((means + labels) / 2).astype(np.float32)


def authors_l2(documents: Single, labels: Single, passes: int) -> None:
    """The authors' formula: all differences of documents and centroids, squared and summed."""
    centroids = labels.astype(np.float64)
    points = documents.astype(np.float64)
    for _ in range(passes):
        distances = ((points[:, None, :] - centroids[None]) ** 2).sum(axis=2)
        nearest = distances.argmin(axis=1)
        for label in range(len(labels)):
            own = points[nearest == label]
            centroids[label] = ((own if len(own) else points).mean(axis=0) + labels[label]) / 2


def authors_divergence(points: NDArray[np.float64], passes: int) -> None:
    """The authors' formula: SciPy's distance of every document to every centroid, one by one."""
    centroids = np.eye(points.shape[1])
    for _ in range(passes):
        nearest = np.array([np.argmin([jensenshannon(p, r) for r in centroids]) for p in points])
        for label in range(len(centroids)):
            if (nearest == label).any():
                centroids[label] = points[nearest == label].mean(axis=0)


def scikit_learn(documents: Single, labels: Single, passes: int) -> int:
    """KMeans from the labels, Lloyd's algorithm; how many passes it made before nothing changed."""
    kmeans = KMeans(len(labels), init=labels, n_init=1, max_iter=passes, tol=0, algorithm="lloyd")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return int(kmeans.fit(documents).n_iter_)


def faiss_kmeans(documents: Single, labels: Single, passes: int, threads: int) -> None:
    """Faiss' Kmeans from the labels, all documents used."""
    import faiss

    faiss.omp_set_num_threads(threads)
    kmeans = faiss.Kmeans(
        documents.shape[1], len(labels), niter=passes, max_points_per_centroid=len(documents)
    )
    kmeans.train(documents, init_centroids=labels)


def measured_limits(threads: int) -> tuple[float, float]:
    """Bytes a second read from memory, and float32 operations a second in a matrix product."""
    big = np.ones(200_000_000, dtype=np.float32)
    read = big.nbytes / best_of(3, big.sum)
    square = np.random.default_rng(0).random((1500, 1500), dtype=np.float32)
    with threadpool_limits(threads):
        product_time = best_of(5, lambda: square @ square)
    return read, 2 * 1500**3 / product_time


def measure_vectors(
    size: tuple[int, int, int], repeats: int, threads: int, limits: tuple[float, float]
) -> Row:
    """Ours and the rivals on one size, squared L2."""
    n, n_labels, n_dims = size
    documents, labels = make_vectors(*size)
    big = n >= 1_000_000
    seen: list[Pass] = []

    def ours() -> None:
        seen.clear()
        refine(documents, labels, distance="l2", threads=threads, on_pass=seen.append)

    ours()
    row = Row(f"{n:,} x {n_labels} x {n_dims}", len(seen), sum(n - one.skipped for one in seen) / n)
    made = 0

    def kmeans() -> None:
        nonlocal made
        made = scikit_learn(documents, labels, row.passes)

    works: dict[str, Callable[[], object]] = {
        "ours": ours,
        "plain": lambda: plain_numpy(documents, labels, row.passes),
        "scikit-learn": kmeans,
        "one pass": lambda: scikit_learn(documents, labels, 1),
    }
    if find_spec("faiss"):
        works["faiss"] = lambda: faiss_kmeans(documents, labels, row.passes, threads)
    else:
        row.notes += "faiss is not installed. "
    # Set here, since looking for the libraries takes milliseconds.
    with threadpool_limits(threads):
        row.seconds = best_in_turn(repeats, works)
    one_pass, all_made = row.seconds.pop("one pass"), row.seconds["scikit-learn"]
    if made < row.passes:
        row.notes += f"scikit-learn: {made} passes in {all_made:.3g} s, the others added. "
        pace = (all_made - one_pass) / max(1, made - 1)
        row.seconds["scikit-learn"] = all_made + pace * (row.passes - made)
    some = min(n, 2_000)
    if not big:
        seconds = best_of(1, lambda: authors_l2(documents[:some], labels, row.passes))
        row.seconds["authors"] = seconds * n / some
        row.notes += f"authors: {some:,} documents, scaled. " if some < n else ""
    row.seconds["limit"] = max(documents.nbytes / limits[0], 2 * n * n_labels * n_dims / limits[1])
    return row


def measure_divergence(size: tuple[int, int], repeats: int, threads: int) -> Row:
    """Ours and the authors' formula for Jensen-Shannon."""
    n, n_labels = size
    points = make_probabilities(n, n_labels)
    seen: list[Pass] = []

    def ours() -> None:
        seen.clear()
        refine(points, distance="jensen-shannon", threads=threads, on_pass=seen.append)

    row = Row(f"Jensen-Shannon {n:,} x {n_labels}", 0, 0.0)
    row.seconds["ours"] = best_of(repeats if n_labels < 100 else 1, ours)
    row.passes, row.scored = len(seen), sum(n - one.skipped for one in seen) / n
    some = 100
    seconds = best_of(1, lambda: authors_divergence(points[:some], 3))
    row.seconds["authors"] = seconds * n / some * row.passes / 3
    row.notes = f"authors: {some} documents and 3 passes, scaled."
    return row


def measure_sets(repeats: int, threads: int) -> Row:
    """240 label sets over 7,600 x 4 x 768, together and one after another."""
    documents, labels = make_vectors(7_600, 4, 768)
    random = np.random.default_rng(5)
    wordings = []
    for label, count in zip(labels, (5, 3, 4, 4), strict=True):
        near = label + 0.35 / np.sqrt(768) * random.standard_normal((count, 768))
        wordings.append((near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32))
    sets = [np.stack(choice) for choice in product(*wordings)]
    results = list(refine_many(documents, sets, method="ulr", threads=threads))
    row = Row("240 sets of 7,600 x 4 x 768", max(r.n_iterations for r in results), float("nan"))
    works: dict[str, Callable[[], object]] = {
        "ours": lambda: list(refine_many(documents, sets, method="ulr", threads=threads)),
        "one by one": lambda: [refine(documents, s, method="ulr", threads=threads) for s in sets],
    }
    row.seconds = best_in_turn(repeats, works)

    def plainly() -> None:
        for result, labels_of_set in zip(results[:24], sets, strict=False):
            plain_numpy(documents, labels_of_set, result.n_iterations)

    def by_kmeans() -> None:
        for result, labels_of_set in zip(results[:24], sets, strict=False):
            scikit_learn(documents, labels_of_set, result.n_iterations)

    row.seconds["plain"] = best_of(1, plainly) * 10
    with threadpool_limits(threads):
        row.seconds["scikit-learn"] = best_of(1, by_kmeans) * 10
    row.notes = "plain, scikit-learn: 24 sets, one by one, scaled; scikit-learn with fewer passes."
    return row


def measure_mixture(size: tuple[int, int, int], repeats: int, threads: int) -> str:
    """The default refinement beside the paper's on the fast loop, cosine."""
    documents, labels = make_vectors(*size)
    lines = ["| documents x labels x dims | method | passes | seconds | memory |", "|---" * 5 + "|"]
    taken = {}
    for method in ("ulr", "mixture"):
        seen: list[Pass] = []

        def work(method: str = method, seen: list[Pass] = seen) -> None:
            seen.clear()
            refine(documents, labels, method=method, threads=threads, on_pass=seen.append)

        taken[method] = best_of(repeats, work)
        lines.append(
            f"| {size[0]:,} x {size[1]} x {size[2]} | {method} | {len(seen)} | "
            f"{taken[method]:.2f} | {peak_memory(size, method):.0f} MB |"
        )
    lines.append(f"\n`mixture` takes {taken['mixture'] / taken['ulr']:.1f} times as long as `ulr`.")
    return "\n".join(lines)


def memory(kind: str) -> float:
    """Megabytes of memory of this process: VmRSS now, VmHWM at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(kind)).split()[1]) / 1024


def peak_memory(size: tuple[int, int, int], method: str = "ulr") -> float:
    """Megabytes that refining takes at its peak beside the documents, in a process of its own.

    The result is counted, since it is there before the rest is let go.
    """
    code = (
        "import sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from refine import make_vectors, memory, refine\n"
        f"documents, labels = make_vectors{size}\n"
        f"refine(documents[:100], labels, method={method!r})\n"
        "open('/proc/self/clear_refs', 'w').write('5')  # forget the peak so far\n"
        "before = memory('VmRSS')\n"
        f"result = refine(documents, labels, method={method!r})\n"
        "print(memory('VmHWM') - before)\n"
    )
    folder = str(Path(__file__).resolve().parent)
    run = subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def table(rows: list[Row]) -> str:
    """The rows in Markdown: seconds, and in brackets how many times ours."""
    names = ["ours", "plain", "scikit-learn", "faiss", "one by one", "authors", "limit"]
    names = [name for name in names if any(name in row.seconds for row in rows)]
    lines = [f"| documents x labels x dims | passes | scored | {' | '.join(names)} | |"]
    lines.append("|---" * (len(names) + 4) + "|")
    for row in rows:
        cells = []
        for name in names:
            seconds = row.seconds.get(name)
            ratio = "" if seconds is None else f" ({seconds / row.seconds['ours']:.2g}x)"
            shown = "" if seconds is None else f"{seconds:.3g}"
            cells.append(shown + ("" if name == "ours" else ratio))
        scored = "" if row.scored != row.scored else f"{row.scored:.1f}"
        lines.append(
            f"| {row.case} | {row.passes} | {scored} | {' | '.join(cells)} | {row.notes} |"
        )
    return "\n".join(lines)


def machine(threads: int, limits: tuple[float, float]) -> str:
    """What it was measured on."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        )
        if Path("/proc/cpuinfo").exists()
        else iter(()),
        platform.processor(),
    )
    return (
        f"{model}, {os.cpu_count()} cores, {threads} threads used; "
        f"{limits[0] / 1e9:.1f} GB/s read by one thread, {limits[1] / 1e9:.0f} Gflop/s in float32 "
        f"products; Python {platform.python_version()}, NumPy {np.__version__}; innermost loops "
        f"{'compiled' if loops.compiled else 'in NumPy'}."
    )


def main() -> None:
    """Measure, print, and write the report where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", help="Markdown file whose refinement part is replaced")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--quick", action="store_true", help="the three small sizes only")
    parser.add_argument("--mixture", action="store_true", help="the default beside the paper's")
    options = parser.parse_args()
    if options.mixture:
        report = measure_mixture(SIZES[3], options.repeats, options.threads)
        print(report)
        if options.write:
            from ulr.experiments.pages import replace_part

            replace_part(Path(options.write), "mixture", report)
        return
    limits = measured_limits(options.threads)
    rows = []
    for size in SIZES[:3] if options.quick else SIZES:
        rows.append(measure_vectors(size, options.repeats, options.threads, limits))
        print(table(rows[-1:]), flush=True)
    for small in DIVERGENCE_SIZES[:1] if options.quick else DIVERGENCE_SIZES:
        rows.append(measure_divergence(small, options.repeats, options.threads))
        print(table(rows[-1:]), flush=True)
    rows.append(measure_sets(options.repeats, options.threads))
    size = SIZES[2] if options.quick else SIZES[3]
    memory = (
        f"Peak memory beside the documents at {size[0]:,} x {size[1]} x {size[2]}: "
        f"{peak_memory(size):.0f} MB, the result of {size[0] * (size[1] * 4 + 16) / 1e6:.0f} MB "
        "included."
    )
    report = f"{machine(options.threads, limits)}\n\n{table(rows)}\n\n{memory}\n"
    print(report)
    if options.write:
        from ulr.experiments.pages import replace_part

        replace_part(Path(options.write), "refinement", report)


if __name__ == "__main__":
    main()
