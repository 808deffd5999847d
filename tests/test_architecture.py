"""Packages use each other through what their ``__init__`` exports, and nothing private."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "ulr"
FILES = sorted(SOURCE.rglob("*.py"))


def package_of(path):
    """The package or top-level module that a file belongs to, such as ``classifier``."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def private_names():
    """Underscored names that each package defines: methods, attributes, functions, constants."""
    found = {}
    for path in FILES:
        own = found.setdefault(package_of(path), set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                own.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                own.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own.add(node.id)
    return found


PRIVATE = private_names()
OURS = {name for names in PRIVATE.values() for name in names if name.startswith("_")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_other_packages_are_used_by_their_exported_names(path):
    own = package_of(path)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ulr."):
            _, package, *modules = node.module.split(".")
            assert package == own or not modules, f"line {node.lineno}: {node.module}"
            names = [each.name for each in node.names if package != own]
            assert not [name for name in names if name.startswith("_")], f"line {node.lineno}"
        if isinstance(node, ast.Attribute) and node.attr in OURS - PRIVATE[own]:
            assert node.attr.startswith("__"), f"line {node.lineno}: {node.attr} is private"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_is_longer_than_400_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
