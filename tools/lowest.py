"""Install the lowest versions that pyproject.toml states, and run a part of the tests with them.

Packages that those need come in their newest versions: what users with old packages have lies between.
"""

import argparse
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
EXTRAS = ("strong", "glove", "web", "dask", "llm", "plots")  # PyTorch has only one version here
TESTING = ("pytest", "hypothesis", "httpx", "pandas", "polars", "onnx")
SUITE = (
    "tests/test_files.py",
    "tests/test_labels.py",
    "tests/test_metrics.py",
    "tests/test_public_names.py",
    "tests/advisers/test_server.py",
    "tests/classifier/test_estimator.py",
    "tests/classifier/test_persistence.py",
    "tests/cli/test_classify.py",
    "tests/cli/test_predict.py",
    "tests/distributed/test_executors.py",
    "tests/encoders/test_cache.py",
    "tests/encoders/test_contract.py",
    "tests/encoders/test_onnx.py",
    "tests/encoders/test_onnx_messages.py",
    "tests/encoders/test_static.py",
    "tests/encoders/test_tokenization.py",
    "tests/encoders/test_universal.py",
    "tests/encoders/test_words.py",
    "tests/refinement/test_golden.py",
    "tests/refinement/test_methods.py",
    "tests/refinement/test_word_weights.py",
    "tests/report/test_report_command.py",
    "tests/tables",
    "tests/web/test_web_api.py",
)


def lowest_versions(project: dict) -> list[str]:
    """The lowest version of each requirement of the package and of the extras that are tried."""
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"]]
    for name in EXTRAS:
        lines += extras[name]
    found = []
    for each in map(Requirement, lines):
        if each.name == project["name"]:
            lines += [line for extra in each.extras for line in extras[extra]]
            continue
        stated = [part.version for part in each.specifier if part.operator in (">=", "==")]
        found += [f"{each.name}=={version}" for version in stated]
    return sorted(set(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "lowest")
    parser.add_argument("tests", nargs="*", default=SUITE, help="instead of a part of the tests")
    given = parser.parse_args()
    versions = lowest_versions(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])
    print(*versions, sep="\n", flush=True)
    venv.create(given.folder, clear=True, with_pip=True)
    constraints = given.folder / "constraints.txt"
    constraints.write_text("\n".join(versions))
    python = given.folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--disable-pip-version-check",
    ]
    install += [
        "--only-binary",
        ":all:",
        "--constraint",
        constraints,
        f"{ROOT}[{','.join(EXTRAS)}]",
        *TESTING,
    ]
    # Old packages use what newer ones deprecate.
    tests = [python, "-m", "pytest", "-W", "ignore::DeprecationWarning", *given.tests]
    for command in (install, tests):
        if code := subprocess.run(command, cwd=ROOT).returncode:
            sys.exit(code)


if __name__ == "__main__":
    main()
