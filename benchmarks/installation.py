"""Size of an installation, seconds to install it and to use it first, beside other libraries.

    python -m benchmarks.installation [--only NAME] [--write docs/installing.md]

Each is installed by pip into a fresh environment, with the CPU build of PyTorch that constraints.txt
names and without compiled bytecode. Size is that of the files that pip added; seconds are of the
processor, those of pip with packages in its cache. *First use* imports the library and, where the
installed packages contain a model, classifies the example of customer messages; the second of two
runs counts.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reproduction.pages import check_part, replace_part

ROOT = Path(__file__).parent.parent
OWN_USE = f"""
import csv
from ulr import ZeroShotClassifier
import yaml
rows = csv.DictReader(open({str(ROOT / "examples/support_messages.csv")!r}, newline=""))
labels = yaml.safe_load(open({str(ROOT / "examples/support_labels.yaml")!r}))
ZeroShotClassifier(labels).fit_predict([row["message"] for row in rows])
"""


@dataclass(frozen=True)
class Installation:
    """What is installed, and the code of its first use."""

    requirement: str
    first_use: str
    classifies: bool = False  # with what is installed


INSTALLATIONS = {
    "`ulr`": Installation(str(ROOT), OWN_USE, True),
    "`ulr[strong]`": Installation(f"{ROOT}[strong]", OWN_USE, True),
    "sentence-transformers": Installation(
        "sentence-transformers", "from sentence_transformers import SentenceTransformer"
    ),
    "BERTopic": Installation("bertopic", "from bertopic import BERTopic"),
    "SetFit": Installation("setfit", "from setfit import SetFitModel"),
    "GLiClass": Installation("gliclass", "from gliclass import ZeroShotClassificationPipeline"),
}


@dataclass(frozen=True)
class Measured:
    """One row of the table."""

    name: str
    packages: int
    megabytes: float
    install_seconds: float
    use_seconds: float | None  # None where it fails
    use: str
    largest: Sequence[tuple[str, float]]


def children_seconds(work: Callable[[], bool]) -> tuple[float, bool]:
    """Processor seconds of the processes that a function runs to their end, and its result."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, result


def sizes(python: Path) -> dict[str, float]:
    """Megabytes of each distribution of an environment, by the files that it lists."""
    code = """
from importlib import metadata
for each in metadata.distributions():
    paths = (file.locate() for file in each.files or [])
    print(each.metadata["Name"], sum(path.stat().st_size for path in paths if path.exists()))
"""
    run = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return {name: int(n_bytes) / 1e6 for name, n_bytes in map(str.split, run.stdout.splitlines())}


def measure(name: str, installation: Installation) -> Measured:
    """Install and use one library in an environment that is deleted afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        before = sizes(python)
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

        def run(*arguments: str) -> Callable[[], bool]:
            command = [str(python), *arguments]
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            return lambda: (
                subprocess.run(command, cwd=folder, env=environment, **quiet).returncode == 0
            )

        options = ["--quiet", "--no-compile", "--disable-pip-version-check"]
        options += ["--constraint", str(ROOT / "constraints.txt")]
        pip = run("-m", "pip", "install", *options, installation.requirement)
        install_seconds, done = children_seconds(pip)
        if not done:
            sys.exit(f"{installation.requirement} cannot be installed.")
        first_use = run("-c", installation.first_use)
        children_seconds(first_use)
        use_seconds, done = children_seconds(first_use)
        added = {each: size for each, size in sizes(python).items() if each not in before}
        largest = sorted(added.items(), key=lambda each: -each[1])
        return Measured(
            name,
            len(added),
            sum(added.values()),
            install_seconds,
            use_seconds if done else None,
            "classifies 353 messages" if installation.classifies else "needs a model download",
            largest,
        )


def table(rows: Sequence[Measured]) -> str:
    """The table of the page."""
    lines = [
        "| | packages | MB | CPU s to install | CPU s of the first use | first use |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        seconds = "fails" if row.use_seconds is None else f"{row.use_seconds:.1f}"
        use = row.use if "message" in row.use else f"import; {row.use}"
        lines.append(
            f"| {row.name} | {row.packages} | {row.megabytes:.0f} | {row.install_seconds:.0f} "
            f"| {seconds} | {use} |"
        )
    for row in rows:
        if "[strong]" in row.name:
            parts = ", ".join(f"{each} {size:.0f}" for each, size in row.largest if size >= 2)
            lines += ["", f"Packages of {row.name} from 2 MB on, in MB: {parts}."]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write into a page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", action="append", help="part of a name; may be repeated")
    parser.add_argument("--write", type=Path, help="page to write the table into")
    given = parser.parse_args()
    if given.write:
        check_part(given.write, "installation")
    chosen = [
        (name, each)
        for name, each in INSTALLATIONS.items()
        if not given.only or any(part in name for part in given.only)
    ]
    rows = []
    for name, each in chosen:
        rows.append(measure(name, each))
        print(table(rows[-1:]), flush=True)
    if given.write:
        replace_part(given.write, "installation", table(rows))


if __name__ == "__main__":
    main()
