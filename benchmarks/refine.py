"""Speed and memory of the refinement methods, beside scikit-learn's and Faiss' k-means, in one run.

    python -m benchmarks.refine [--write docs/performance.md] [--repeats 3] [--n-jobs N] [--quick]

Data are generated unit vectors: class means, a low-rank topical spread, noise and a common offset;
anchors lie some way off the class means. Everybody starts at the same anchors and uses the same
number of threads. All take turns, and times are the best of the repeats: other work on a shared
machine only adds to them. CPU seconds are those of all threads.

- paper's: ``method="ulr"`` with squared L2 distance. The rivals make as many passes; scikit-learn
  stops when nothing changes, and its missing passes are added at its own pace.
- default: ``method="discriminant"`` on vectors, with calibration. scikit-learn's KMeans runs with
  its default tolerance and number of passes.
- Jensen-Shannon: the authors' formula evaluates SciPy's distance for every pair of document and
  label; it is timed on 100 documents and 3 passes, and scaled.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.spatial.distance import jensenshannon
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.measuring import Time, timed
from reproduction.pages import replace_part
from ulr.refinement import calibrate, refine, refine_many
from ulr.threads import available_cores

Single = NDArray[np.float32]
Size = tuple[int, int, int]
PAPER_SIZES: tuple[Size, ...] = (
    (7_600, 4, 384),
    (60_000, 10, 300),
    (70_000, 14, 768),
    (1_000_000, 20, 384),
)
DEFAULT_SIZES: tuple[Size, ...] = ((60_000, 10, 300), (1_000_000, 20, 384))
REST_SECONDS = 0.1  # threads of OpenBLAS and OpenMP stay active for a while after their work


def make_vectors(n: int, n_labels: int, n_dims: int) -> tuple[Single, Single]:
    """Unit vectors like those of sentence encoders, and anchors near their classes."""
    random = np.random.default_rng(0)
    scale = np.float32(1 / np.sqrt(n_dims))

    def normal(*shape: int) -> Single:
        return random.standard_normal(shape, dtype=np.float32)

    means, offset = normal(n_labels, n_dims) * scale, normal(n_dims) * scale
    topics = normal(24, n_dims) * scale * np.linspace(1, 0.3, 24, dtype=np.float32)[:, None]
    classes = random.choice(n_labels, n, p=random.dirichlet(np.full(n_labels, 3.0)))
    documents = np.empty((n, n_dims), dtype=np.float32)
    for start in range(0, n, 50_000):
        some = classes[start : start + 50_000]
        block = means[some] + 0.8 * offset + 0.9 * scale * normal(len(some), n_dims)
        block += 0.45 * normal(len(some), 24) @ topics
        documents[start : start + 50_000] = block / np.linalg.norm(block, axis=1, keepdims=True)
    anchors = 0.45 * means + 0.8 * offset + 0.8 * scale * normal(n_labels, n_dims)
    anchors += 0.6 * normal(n_labels, 24) @ topics
    return documents, anchors / np.linalg.norm(anchors, axis=1, keepdims=True)


def make_probabilities(n: int, n_labels: int) -> NDArray[np.float64]:
    """Probabilities that lean towards a class and towards the labels it is confused with."""
    random = np.random.default_rng(0)
    classes = random.integers(n_labels, size=n)
    scores = 1.2 * random.standard_normal((n, n_labels))
    scores += random.standard_normal((n_labels, n_labels))[classes]
    scores[np.arange(n), classes] += 1.5
    return softmax(scores, axis=1)


def best_in_turn(repeats: int, works: dict[str, Callable[[], object]]) -> dict[str, Time]:
    """Best wall and best CPU time of each of some works, which take turns.

    Short works have more turns, so that each meets a quiet moment.
    """
    best = dict.fromkeys(works, Time(np.inf, np.inf))
    began, turn = time.perf_counter(), 0
    while turn < repeats or (turn < 20 and time.perf_counter() - began < 8.0):
        for name, work in works.items():
            time.sleep(REST_SECONDS)
            best[name] = best[name].best(timed(work))
        turn += 1
    return best


def lloyd(documents: Single, anchors: Single, passes: int) -> int:
    """Lloyd's algorithm by scikit-learn; the number of passes until nothing changed."""
    kmeans = KMeans(len(anchors), init=anchors, n_init=1, max_iter=passes, tol=0, algorithm="lloyd")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return int(kmeans.fit(documents).n_iter_)


def faiss_kmeans(documents: Single, anchors: Single, passes: int, n_jobs: int) -> None:
    """Faiss' k-means on all documents."""
    import faiss

    faiss.omp_set_num_threads(n_jobs)
    kmeans = faiss.Kmeans(
        documents.shape[1], len(anchors), niter=passes, max_points_per_centroid=len(documents)
    )
    kmeans.train(documents, init_centroids=anchors)


def measure_paper(size: Size, repeats: int, n_jobs: int) -> str:
    """A table row: the paper's method and k-means with equally many passes."""
    documents, anchors = make_vectors(*size)
    trace = refine(documents, anchors, method="ulr", distance="l2", n_jobs=n_jobs).trace
    made = lloyd(documents, anchors, len(trace))
    works: dict[str, Callable[[], object]] = {
        "ulr": lambda: refine(documents, anchors, method="ulr", distance="l2", n_jobs=n_jobs),
        "scikit-learn": lambda: lloyd(documents, anchors, len(trace)),
        "first pass": lambda: lloyd(documents, anchors, 1),
    }
    if find_spec("faiss"):
        works["Faiss"] = lambda: faiss_kmeans(documents, anchors, len(trace), n_jobs)
    with threadpool_limits(n_jobs):
        times = best_in_turn(repeats, works)
    first = times.pop("first pass")
    ran = times["scikit-learn"]
    pace = max(0, len(trace) - made) / max(1, made - 1)
    times["scikit-learn"] = Time(
        ran.wall + pace * (ran.wall - first.wall), ran.cpu + pace * (ran.cpu - first.cpu)
    )
    scored = sum(done.scored for done in trace) / size[0]
    return f"| {shown(size)} | {len(trace)} | {scored:.1f} | {cells(times, 'ulr')} |"


def measure_default(size: Size, repeats: int, n_jobs: int) -> str:
    """A table row: the default method with calibration, and scikit-learn's KMeans."""
    documents, anchors = make_vectors(*size)
    n_iter = 0

    def ours() -> None:
        refinement = refine(documents, anchors, n_jobs=n_jobs)
        calibrate(documents, anchors, refinement, n_jobs=n_jobs)

    def kmeans() -> None:
        nonlocal n_iter
        n_iter = KMeans(len(anchors), init=anchors, n_init=1).fit(documents).n_iter_

    with threadpool_limits(n_jobs):
        times = best_in_turn(repeats, {"default": ours, "scikit-learn": kmeans})
    return f"| {shown(size)} | {n_iter} | {cells(times, 'default')} |"


def measure_jensen_shannon(n: int, n_labels: int, repeats: int, n_jobs: int) -> str:
    """A sentence: Algorithm 2, and the authors' formula."""
    points = make_probabilities(n, n_labels)
    passes = refine(points, distance="jensen-shannon", n_jobs=n_jobs).n_iter
    times = best_in_turn(
        repeats, {"ours": lambda: refine(points, distance="jensen-shannon", n_jobs=n_jobs)}
    )
    sample = points[:100]
    formula = timed(lambda: authors_formula(sample, 3)).scaled(n / 100 * passes / 3)
    ratio = formula.wall / times["ours"].wall
    return (
        f"Jensen-Shannon, {n:,} x {n_labels}, {passes} passes: {times['ours'].wall:.2f} s; the "
        f"authors' formula {formula.wall:,.0f} s (scaled), {ratio:,.0f} times as long."
    )


def authors_formula(points: NDArray[np.float64], passes: int) -> None:
    """SciPy's distance of every document to every centroid, one by one."""
    centroids = np.eye(points.shape[1])
    for _ in range(passes):
        nearest = np.array([np.argmin([jensenshannon(p, r) for r in centroids]) for p in points])
        for label in range(len(centroids)):
            if (nearest == label).any():
                centroids[label] = points[nearest == label].mean(axis=0)


def measure_sets(repeats: int, n_jobs: int) -> str:
    """A sentence: 240 sets of anchors over 7,600 x 4 x 768, cosine."""
    documents, anchors = make_vectors(7_600, 4, 768)
    random = np.random.default_rng(5)
    phrases = []
    for anchor, count in zip(anchors, (5, 3, 4, 4), strict=True):
        near = anchor + 0.35 / np.sqrt(768) * random.standard_normal((count, 768))
        phrases.append((near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32))
    sets = [np.stack(choice) for choice in product(*phrases)]

    def ours() -> None:
        for _ in refine_many(documents, sets, method="ulr", n_jobs=n_jobs):
            pass

    taken = best_in_turn(repeats, {"ours": ours})["ours"]
    return f"240 sets of anchors over 7,600 x 4 x 768, paper's method: {taken.wall:.1f} s."


def memory(kind: str) -> float:
    """Megabytes of memory of this process: VmRSS now, VmHWM at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(kind)).split()[1]) / 1024


def peak_memory(size: Size, method: str) -> str:
    """A sentence: megabytes at the peak beside documents and result, in a process of its own."""
    code = (
        "import sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from refine import make_vectors, memory, refine\n"
        f"documents, anchors = make_vectors{size}\n"
        f"refine(documents[:2000], anchors, method={method!r})\n"
        "open('/proc/self/clear_refs', 'w').write('5')  # forget the peak so far\n"
        "before = memory('VmRSS')\n"
        f"result = refine(documents, anchors, method={method!r})\n"
        "own = result.scores.nbytes + result.predictions.nbytes + result.unrefined.nbytes\n"
        "print(memory('VmHWM') - before - own / 2**20)\n"
    )
    folder = str(Path(__file__).resolve().parent)
    run = subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, text=True, check=True
    )
    return f"{method}: {float(run.stdout):.0f} MB"


def shown(size: Size) -> str:
    """A size for the table."""
    return f"{size[0]:,} x {size[1]} x {size[2]}"


def cells(times: dict[str, Time], ours: str) -> str:
    """Wall and CPU seconds of each, and how many times ours the others take."""
    found = []
    for name, taken in times.items():
        cell = f"{taken.wall:.3g} s, {taken.cpu:.3g} CPU s"
        if name != ours:
            wall, cpu = taken.wall / times[ours].wall, taken.cpu / times[ours].cpu
            cell += f" (**{wall:.2g}x**, {cpu:.2g}x)"
        found.append(cell)
    return " | ".join(found)


def machine(n_jobs: int) -> str:
    """What was measured on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "")
    return (
        f"{model or platform.machine()}, {n_jobs} threads; Python {platform.python_version()}, NumPy "
        f"{np.__version__}, scikit-learn {sklearn.__version__}. Ratios of wall time are bold."
    )


def main() -> None:
    """Measure, print, and write the report if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", help="Markdown file whose part 'refinement' is replaced")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--n-jobs", type=int, default=available_cores())
    parser.add_argument("--quick", action="store_true", help="without the large sizes")
    options = parser.parse_args()
    repeats, n_jobs = options.repeats, options.n_jobs
    report = [machine(n_jobs), ""]

    def add(*lines: str) -> None:
        report.extend(lines)
        print(*lines, sep="\n", flush=True)

    faiss = " Faiss |" if find_spec("faiss") else ""
    add(f"| paper's method | passes | scored | ours | scikit-learn lloyd |{faiss}")
    add("|---" * (6 if faiss else 5) + "|")
    for size in PAPER_SIZES[:3] if options.quick else PAPER_SIZES:
        add(measure_paper(size, repeats, n_jobs))
    add("", "| default with calibration | KMeans passes | ours | scikit-learn KMeans |")
    add("|---" * 4 + "|")
    for size in DEFAULT_SIZES[:1] if options.quick else DEFAULT_SIZES:
        add(measure_default(size, repeats, n_jobs))
    add("", measure_sets(repeats, n_jobs))
    add("", measure_jensen_shannon(70_000, 14, repeats, n_jobs))
    size = PAPER_SIZES[2] if options.quick else PAPER_SIZES[3]
    peaks = ", ".join(peak_memory(size, method) for method in ("ulr", "discriminant"))
    add("", f"Peak memory beside documents and result at {shown(size)}: {peaks}.")
    if options.write:
        replace_part(Path(options.write), "refinement", "\n".join(report) + "\n")


if __name__ == "__main__":
    main()
