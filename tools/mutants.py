"""Mutation tests of the refinement: applies each change below and expects a test to fail.

    python tools/mutants.py [NAME …]

Every mutant is a copy of the package with one line changed. A mutant that no test notices is a gap
in the tests; the script lists it and exits with 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "ulr"


@dataclass(frozen=True)
class Mutant:
    """One change of one file; `old` occurs in it exactly once."""

    name: str
    file: str
    old: str
    new: str


def _constant(name: str, old: str, new: str) -> Mutant:
    line = f"    {name}: float = {old}\n"
    return Mutant(name, "constants.py", line, f"    {name}: float = {new}\n")


MUTANTS = [
    _constant("centring", "0.3", "1.0"),
    _constant("mean_rest", "0.45", "9.0"),
    _constant("examples", "5.0", "50.0"),
    _constant("first_anchor_weight", "0.7", "0.5"),
    _constant("last_anchor_weight", "0.3", "0.5"),
    _constant("few_documents", "20.0", "0.0"),
    _constant("sharpness", "3.0", "6.0"),
    _constant("size_share", "0.05", "0.5"),
    _constant("size_count", "5.0", "40.0"),
    _constant("skewed", "0.95", "0.5"),
    _constant("shrink", "0.3", "0.1"),
    _constant("tie", "1.0", "0.0"),
    _constant("temper", "0.5", "1.0"),
    _constant("lead", "2.0", "4.0"),
    _constant("agreement_lead", "0.35", "0.0"),
    _constant("cluster_share", "0.25", "0.0"),
    Mutant("fewer cluster passes", "constants.py", "cluster_passes: int = 8", "cluster_passes: int = 4"),
    Mutant("fewer Gaussian passes", "constants.py", "gaussian_passes: int = 4", "gaussian_passes: int = 1"),
    Mutant("smaller fit sample", "constants.py", "FIT_SAMPLE = 200_000", "FIT_SAMPLE = 20_000"),
    Mutant("vectors fitted on few", "constants.py", "VECTOR_SAMPLE_PER_LABEL = 16_384, 512", "VECTOR_SAMPLE_PER_LABEL = 2_048, 512"),
    Mutant("sets in another order", "api.py", "for each in anchor_sets), at_once)", "for each in anchor_sets[::-1]), at_once)"),
    Mutant("no leave-one-out", "clusters.py", "others = sizes - shares", "others = sizes - 0 * shares"),
    Mutant("document in its own product", "clusters.py", "factor * (products - shares * own)", "factor * products"),
    Mutant("components of a label damped", "components.py", "not _two_groups(column)", "True"),
    Mutant("components of names damped", "components.py", "large & unnamed", "large"),
    Mutant("unit cluster means", "clusters.py", "means = self.sums / (np.maximum(self.sizes, 1e-3) * self.mean_length)[:, None]", "means = unit_rows(self.sums)"),
    Mutant("no size prior", "clusters.py", "scores += log_sizes.astype(np.float32)[:, None]", "pass"),
    Mutant("known labels not fixed", "clusters.py", "shares[labels[known], known] = 1.0", "pass"),
    Mutant("means not tied", "discriminant.py", "sums = clusters.sums + strength * tied", "sums = clusters.sums + strength * clusters.sums"),
    Mutant("no expected means", "discriminant.py", " + c.few_documents * expected", ""),
    Mutant("few documents refined", "constants.py", "FEWEST_PER_LABEL = 3", "FEWEST_PER_LABEL = 0"),
    Mutant("excluded documents in the words", "words.py", "used = np.flatnonzero(codes != EXCLUDED)", "used = np.arange(len(codes))"),
    Mutant("covariance not shrunk", "discriminant.py", "            covariance *= 1 - shrink\n", ""),
    Mutant("Gaussian offsets", "discriminant.py", "offsets = -0.5 *", "offsets = -0.25 *"),
    Mutant("skew of few documents", "discriminant.py", "self.evidence * skew", "skew"),
    Mutant("no Miller-Madow correction", "discriminant.py", "entropy += (len(shares) - 1)", "entropy += 0 * (len(shares) - 1)"),
    Mutant("first rows as sample", "discriminant.py", "others = draw.permutation(used[blocks.known[used] < 0])", "others = (used[blocks.known[used] < 0])"),
    Mutant("known documents left out of the sample", "discriminant.py", "[: most // 2]", "[:0]"),
    Mutant("worst half of the labels", "diagnosis.py", "[::-1]\n", "\n"),
    Mutant("tiny labels count", "diagnosis.py", "0.1 * counts.sum()", "0.0 * counts.sum()"),
    Mutant("words see their own document", "words.py", "naive_bayes(total - own, total)", "naive_bayes(total, total)"),
    Mutant("less smoothing of words", "constants.py", "SMOOTHING = 0.3", "SMOOTHING = 0.01"),
    Mutant("rare words used", "constants.py", "FEWEST_WITH_WORD = 2", "FEWEST_WITH_WORD = 1"),
    Mutant("no sublinear counts", "words.py", "(1.0 + np.log(counts.data[kept]))", "counts.data[kept]"),
    Mutant("words taught once", "words.py", "scores[fold.rows] += weight * fold.scores()", "pass"),
    Mutant("words change the sizes", "discriminant.py", "keep_sizes=fit.size_weight", "keep_sizes=0.0"),
    Mutant("words ignore known labels", "words.py", "posterior[known, codes[known]] = 1.0", "pass"),
    Mutant("biased draw in calibration", "calibration.py", "rows = np.sort(draw[:", "rows = np.sort(usable[:"),
    Mutant("known documents agree", "calibration.py", "free = self.codes == UNKNOWN\n        return", "free = self.codes >= -1\n        return"),
    Mutant("own vote among neighbours", "calibration.py", "similarity[np.arange(len(rows)), rows] = -np.inf", "pass"),
    Mutant("no random rotation", "calibration.py", "documents = dct(self.documents * signs.astype(np.float32), norm=\"ortho\")[:, axes]", "documents = self.documents[:, axes]"),
    Mutant("calibration constant", "constants.py", "0.4, 0.8, 0.6, -0.7", "0.4, 0.8, 0.6, 2.0"),
    Mutant("few documents not made up for", "calibration.py", "expected + few + ", "expected + "),
    Mutant("lead not divided", "calibration.py", "mean_lead(cosines.T) / max(float(cosines.std(dtype=np.float64)), 1e-9)", "mean_lead(cosines.T)"),
    Mutant("words not used", "calibration.py", "if words is not None:", "if False:"),
    _constant("reliable", "0.15", "0.0001"),
    _constant("large_entropy_loss", "0.15", "9.0"),
    Mutant("collapse does not count", "discriminant.py", "self.share = self._reliability * self._kept", "self.share = self._reliability"),
    Mutant("agreement by chance counts", "clusters.py", "(halves.agreeing / n - by_chance)", "(halves.agreeing / n)"),
    Mutant("names do not count", "discriminant.py", "views.append(View(names, normalize=True))", "pass"),
    Mutant("examples do not replace names", "discriminant.py", "max(by_names, examples / (examples + c.examples))", "by_names"),
    Mutant("examples of some labels only", "discriminant.py", "known + count[:, None] * clusters.sums", "known"),
    Mutant("unreliable names trusted", "constants.py", "LEAST_RELIABILITY = 0.1", "LEAST_RELIABILITY = -1.0"),
    Mutant("one half twice", "clusters.py", "order[size : 2 * size]", "order[:size]"),
    Mutant("anchor weight of the paper", "distances.py", "anchor_weight: float = 0.5", "anchor_weight: float = 0.4"),
    Mutant("empty cluster", "distances.py", 'empty_cluster: EmptyCluster = "mean"', 'empty_cluster: EmptyCluster = "previous"'),
    Mutant("known weight of the paper", "paper.py", "known_weight: float = 0.5", "known_weight: float = 0.4"),
    Mutant("bound too loose", "paper.py", "lead = state[\"lead\"] - fall", "lead = state[\"lead\"] - 0.2 * fall"),
    Mutant("bound without the shift", "paper.py", "fall = self.shift.astype(reach.dtype)[labels]", "fall = 0 * self.shift.astype(reach.dtype)[labels]"),
    Mutant("last iteration", "paper.py", 'distance.keep == "last" or objective', 'distance.keep == "lowest" or objective'),
    Mutant("Jensen-Shannon bound", "paper.py", 'state["lower"] - self.movement', 'state["lower"] + self.movement'),
    Mutant("overturned by size alone", "diagnosis.py", "(others and resized)", "resized"),
    Mutant("always trusted", "constants.py", "LEAST_FIT = 0.7", "LEAST_FIT = 0.0"),
    Mutant("summaries lose a block", "blocks.py", "total = summary if total is None else total + summary", "total = summary"),
]  # fmt: skip


def survives(mutant: Mutant) -> bool:
    """Whether the tests pass with the change."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        package = Path(folder) / "ulr"
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        file = package / "refinement" / mutant.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            raise SystemExit(
                f"{mutant.name}: {mutant.file} has {text.count(mutant.old)} × {mutant.old!r}"
            )
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        tests = ["-x", "-q", "-p", "no:cacheprovider", "tests/refinement"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *tests],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": folder, "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True,
            check=False,
        )
        return done.returncode == 0


def main() -> None:
    """Run all mutants, or those that are named, two at a time."""
    chosen = [each for each in MUTANTS if not sys.argv[1:] or each.name in sys.argv[1:]]
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(survives, chosen)
        survivors = []
        for mutant, survived in zip(chosen, results, strict=True):
            print(f"{'SURVIVED' if survived else 'killed':9} {mutant.name}", flush=True)
            if survived:
                survivors.append(mutant.name)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants were killed.")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
