"""Folders computed from a file once, and used again until the file or a setting changes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ulr.errors import EncoderError
from ulr.files import FileIdentity, atomic_folder, user_cache

_ABOUT = "about.json"

Facts = dict[str, Any]


@dataclass(frozen=True)
class Derived:
    """A folder computed from a file.

    Attributes
    ----------
    folder
        The folder.
    sha256
        Hash of the file that it was computed from.
    facts
        What `build` returned.
    """

    folder: Path
    sha256: str
    facts: Facts


def derived_folder(
    source: Path,
    settings: dict[str, Any],
    build: Callable[[Path], Facts],
    cache: Path | None = None,
) -> Derived:
    """The folder computed from a file, built if there is none or if it is out of date.

    It is ``SOURCE.ulr`` next to the file, or a folder in the user's cache where nothing can be
    written there. It appears complete or not at all; processes that build it at the same time
    replace each other's.

    Parameters
    ----------
    source
        The file.
    settings
        What the folder depends on besides the file, a format version among it.
    build
        Fills an empty folder and returns facts about it that JSON can hold.
    cache
        Where to put the folder instead.
    """
    candidates = _candidates(source, cache)
    for folder in candidates:
        if (found := _current(folder, source, settings)) is not None:
            return found
    identity = FileIdentity.of(source)
    reasons = []
    for folder in candidates:
        try:
            return _build(folder, source, identity, settings, build)
        except OSError as error:
            if (found := _current(folder, source, settings)) is not None:  # by another process
                return found
            reasons.append(f"{folder} ({error.strerror or error})")
    raise EncoderError(
        f"what was computed from {source} cannot be written to {' nor to '.join(reasons)}."
    )


def _candidates(source: Path, cache: Path | None) -> list[Path]:
    name = hashlib.sha256(os.fsencode(source.resolve())).hexdigest()[:32]
    if cache is not None:
        return [cache / name]
    return [source.with_name(f"{source.name}.ulr"), user_cache("derived") / name]


def _current(folder: Path, source: Path, settings: dict[str, Any]) -> Derived | None:
    """The folder as it is on disk; None if it is missing, incomplete or out of date."""
    try:
        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        identity = FileIdentity(**about["source"])
        sizes = {name: (folder / name).stat().st_size for name in about["files"]}
        if about["settings"] != settings or sizes != about["files"] or not identity.matches(source):
            return None
        return Derived(folder, identity.sha256, about["facts"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _build(
    folder: Path,
    source: Path,
    identity: FileIdentity,
    settings: dict[str, Any],
    build: Callable[[Path], Facts],
) -> Derived:
    if folder.exists() and not (folder / _ABOUT).is_file():
        raise EncoderError(
            f"{folder} is needed for what is computed from {source.name}, but holds something "
            "else; move it away."
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(folder) as partial:
        facts = build(partial)
        if not identity.matches(source):
            raise EncoderError(f"{source} changed while it was read; start again.")
        about = {
            "source": asdict(identity),
            "settings": settings,
            "facts": facts,
            "files": {file.name: file.stat().st_size for file in partial.iterdir()},
        }
        (partial / _ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
    return Derived(folder, identity.sha256, facts)
