"""Every code block of the README and of every page runs, or is checked as far as it can be.

Python blocks give the output they show. Commands of `ulr` run on the shipped examples, those of the
README as processes. Commands of the benchmarks, which need data, are parsed by their own parsers;
targets of make and extras of pip exist. A block after ``<!-- not run -->``, or a line with
``# not run``, is only parsed.
"""

import argparse
import csv
import doctest
import importlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer
import yaml

from shown import differences
from ulr.cli import app

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
CODE = {"python", "sh", "yaml", "json"}
OTHER = {"text", "{toctree}", "{eval-rst}", "{include}"}
ROWS = 60
TOLERANCE = 3  # documents or per cent, by which encoders differ between processors
FENCE = re.compile(
    r"^(?P<mark> *<!-- not run -->\n)?(?P<indent> *)```(?P<kind>[^\n]*)\n(?P<code>.*?)^(?P=indent)```$",
    re.M | re.S,
)


def blocks_of(page):
    """The kind, the code and whether it runs, of each block."""
    return [
        (
            found["kind"].split()[0],
            re.sub(f"^{found['indent']}", "", found["code"], flags=re.M),
            not found["mark"],
        )
        for found in FENCE.finditer((ROOT / page).read_text())
    ]


def lines_of(code):
    """Commands of a shell block, with continued lines and variables joined, and whether each runs."""
    code = code.replace("\\\n", " ")
    for name, value in re.findall(r'^([A-Z]+)="(.*)"$', code, re.M):
        code = code.replace(f'{name}="{value}"\n', "").replace(f"${name}", value)
    for line in code.splitlines():
        command, _, comment = line.partition("  # ")
        if command.strip():
            yield command.strip(), comment != "not run"


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """A folder as the pages assume it: the shipped examples, shortened, also under a user's names."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name, copies in {
        "news_blurbs.csv": ("news.csv", "january.csv", "february.csv"),
        "support_messages.csv": ("tickets.csv", "messages.csv"),
    }.items():
        with (ROOT / "examples" / name).open(newline="", encoding="utf-8") as source:
            rows = list(csv.reader(source))[: ROWS + 1]
        for path in (Path("examples", name), *copies):
            with (folder / path).open("w", newline="", encoding="utf-8") as target:
                csv.writer(target).writerows(rows)
    text = (folder / "news.csv").read_text(encoding="utf-8")
    (folder / "test.csv").write_text(
        text.replace("headline,summary", "title,body", 1), encoding="utf-8"
    )
    shutil.copy(ROOT / "examples" / "news_labels.txt", folder / "labels.txt")
    shutil.copy(ROOT / "examples" / "support_labels.yaml", folder / "labels.yaml")
    return folder


def parse_ulr(arguments):
    """Parse a command line of `ulr` as the program does, and run nothing."""
    command = typer.main.get_command(app)
    context = command.make_context("ulr", arguments)
    name, command, rest = command.resolve_command(context, arguments)
    command.make_context(name, list(rest), parent=context)


class ParsedError(Exception):
    """The arguments of a script were accepted."""


def parse_script(arguments, monkeypatch):
    """Parse a command line of a benchmark or of the reproduction with its own parser."""
    parse = argparse.ArgumentParser.parse_args

    def parse_only(parser, *given):
        parse(parser, *given)
        raise ParsedError

    module = f"{arguments[0]}.__main__" if arguments[0] == "reproduction" else arguments[0]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", [module, *arguments[1:]])
        patch.setattr(argparse.ArgumentParser, "parse_args", parse_only)
        with pytest.raises(ParsedError):
            importlib.import_module(module).main()


def check_other(arguments, monkeypatch):
    """Check a command that cannot run here against what it names."""
    match arguments:
        case ["python", "-m", *rest] if rest[0].split(".")[0] in ("benchmarks", "reproduction"):
            parse_script(rest, monkeypatch)
        case ["make", target, *_]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M), target
        case ["pip", "install", *packages]:
            extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
                "optional-dependencies"
            ]
            for each in packages:
                for name in re.findall(r"\[(.*)\]", each):
                    assert set(name.split(",")) <= set(extras)
        case _:
            raise AssertionError(f"nothing checks {shlex.join(arguments)}; mark it as not run")


def answer(path):
    """Fill in the true labels, as a person would."""
    with path.open(newline="", encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    with path.open("w", newline="", encoding="utf-8") as target:
        writer = csv.DictWriter(target, rows[0])
        writer.writeheader()
        writer.writerows(row | {"label": row["category"]} for row in rows)


def run_shell(page, code, runs, folder, ulr_command, monkeypatch):
    """Run or check each command; what the last one printed."""
    printed = ""
    for line, wanted in lines_of(code):
        arguments = shlex.split(line, comments=True)
        if arguments[0] != "ulr":
            if runs and wanted:
                check_other(arguments, monkeypatch)
        elif not (runs and wanted):
            parse_ulr(arguments[1:])
        elif page == "README.md" or "|" in arguments:
            program = f"{shlex.quote(sys.executable)} -m ulr "
            command = program + line.removeprefix("ulr ").replace("| ulr ", f"| {program}")
            result = subprocess.run(
                ["sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=120
            )
            assert result.returncode == 0, result.stderr
            assert "Traceback" not in result.stderr
            printed = result.stdout
        else:
            result = ulr_command(*arguments[1:])
            assert result.code == 0, f"{line}\n{result.err}"
            printed = result.out
            if arguments[1] == "ask":
                answer(folder / "ask.csv")
    return printed


def check_shown(shown, printed):
    """The shown beginning of an output, up to an ellipsis, is that of the present code."""
    one, other = (re.sub(r"[\d.]+ s\.", "", text).split() for text in (shown, printed))
    one = one[: one.index("…")]
    assert len(one) > 10
    assert differences(" ".join(one), " ".join(other[: len(one)]), TOLERANCE) == []


def run_python(page, code, runs, names):
    if not runs or "# not run" in code:
        compile(re.sub("^(>>>|\\.\\.\\.) ?", "", code, flags=re.M), page, "exec")
    elif ">>> " in code:
        test = doctest.DocTestParser().get_doctest(code, names, page, None, 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        assert runner.run(test, clear_globs=False).failed == 0
        names.update(test.globs)
    else:
        exec(compile(code, page, "exec"), names)


def test_readme_has_commands_and_python():
    kinds = [kind for kind, _, runs in blocks_of("README.md") if runs]
    assert {"python", "sh"} <= set(kinds)


@pytest.mark.parametrize("page", PAGES)
def test_blocks_have_a_known_kind(page):
    """So none is left out, and none is hidden as plain text."""
    text = (ROOT / page).read_text()
    for kind, code, _ in blocks_of(page):
        assert kind in CODE | OTHER, kind
        assert kind != "text" or not re.search(r"^(\$ )?(ulr|python|pip|make|curl) ", code, re.M)
    outside = FENCE.sub("", text)
    assert "```" not in outside
    assert not re.search(r"^\n {4}\S", outside, re.M), "an indented block"


# Short examples may leave a file open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("page", [page for page in PAGES if CODE & {b[0] for b in blocks_of(page)}])
def test_blocks_run(page, examples, tmp_path, command, monkeypatch):
    """In their order: later blocks use the names and the files of earlier ones."""
    folder = tmp_path / "clone"
    shutil.copytree(examples, folder)
    monkeypatch.chdir(folder)
    if page == "README.md":  # its output is that of all rows
        shutil.copytree(ROOT / "examples", folder / "examples", dirs_exist_ok=True)
    names, printed = {"__name__": "page"}, ""
    for kind, code, runs in blocks_of(page):
        if kind == "python":
            run_python(page, code, runs, names)
        elif kind == "sh":
            printed = run_shell(page, code, runs, folder, command, monkeypatch)
        elif kind == "text" and page == "README.md":
            check_shown(code, printed)
        elif kind == "yaml":
            assert yaml.safe_load(code)
        elif kind == "json":
            assert json.loads(code)


def with_examples():
    """Modules whose docstrings, which the API page shows, have examples."""
    source = ROOT / "src"
    for path in sorted(source.rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            yield ".".join(path.relative_to(source).with_suffix("").parts)


@pytest.mark.parametrize("module", list(with_examples()))
def test_examples_of_docstrings_run(module):
    """In this process; none writes a file."""
    found = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert found.attempted
    assert not found.failed


def anchors_of(page):
    """Anchors of the headings of a page, as they are made by GitHub and by MyST."""
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_of_the_readme_lead_somewhere():
    """Those of the pages are checked when the site is built."""
    links = re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", (ROOT / "README.md").read_text())
    assert len(links) > 10
    for target, anchor in links:
        assert (ROOT / target).exists(), target
        assert not anchor or anchor in anchors_of(ROOT / target), f"{target}#{anchor}"


def test_few_blocks_are_not_run():
    """Those that need a further package are run by tests/integrations/test_page.py."""
    blocks = [block for page in PAGES for block in blocks_of(page) if block[0] in CODE]
    skipped = [
        code for _, code, runs in blocks if not runs or re.search(r"# not run(?! without)", code)
    ]
    assert len(skipped) <= len(blocks) / 4
