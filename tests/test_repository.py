"""Files for those who cite, install or change the project agree with it."""

import re
import tomllib
from pathlib import Path

import yaml

import ulr

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_is_of_this_version_and_of_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= citation.keys()
    assert (citation["version"], citation["license"]) == (ulr.__version__, PROJECT["license"])
    paper = citation["preferred-citation"]
    assert [each["family-names"] for each in paper["authors"]] == ["Chu", "Stratos", "Gimpel"]


def test_workflows_call_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([\w-]+):", makefile, re.M))
    called = set()
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        for job in yaml.safe_load(file.read_text())["jobs"].values():
            for step in job["steps"]:
                if "run" in step:
                    program, target, *_ = step["run"].split()
                    assert program == "make", f"{file.name} runs more than a target"
                    called.add(target)
    assert {"test", "demo", "dist", "docs", "test-lowest", "container"} <= called
    assert called <= targets


def test_all_extras_for_users_are_on_the_page_about_installing():
    page = (ROOT / "docs" / "installing.md").read_text()
    extras = set(PROJECT["optional-dependencies"]) - {"bench", "dev", "docs", "integrations"}
    assert extras <= set(re.findall(r"^\| `([\w-]+)` \|", page, re.M))
