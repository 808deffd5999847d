"""Text files, plain or gzipped, in the encoding they have."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ulr.errors import TableError
from ulr.files import open_bytes

_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
HEAD_BYTES = 65_536


@contextlib.contextmanager
def open_text(path: Path, encoding: str = "utf-8") -> Iterator[IO[str]]:
    """Content of a text file, plain or gzipped; line ends are kept as they are."""
    with open_bytes(path) as raw:
        yield io.TextIOWrapper(raw, encoding=encoding, newline="")


def read_head(path: Path) -> bytes:
    """The first bytes of a file, decompressed."""
    with open_bytes(path) as file:
        return file.read(HEAD_BYTES)


def encoding_of(head: bytes) -> str:
    """UTF-8, or UTF-16 where a file begins like it; other encodings must be named."""
    for mark, encoding in _BOMS.items():
        if head.startswith(mark):
            return encoding
    # Text of mostly Latin letters in UTF-16 has a zero byte in every second place.
    for encoding, place in (("utf-16-le", 1), ("utf-16-be", 0)):
        zeros = head[place::2]
        if len(zeros) > 3 and zeros.count(0) > 0.6 * len(zeros):
            return encoding
    return "utf-8"


def not_in_encoding(name: str, encoding: str, error: UnicodeError) -> TableError:
    """The error for a file that is not in the encoding it was read in."""
    reason = str(error)
    if isinstance(error, UnicodeDecodeError):
        reason = f"byte 0x{error.object[error.start]:02x} is not valid"
    shown = encoding.upper().removesuffix("-SIG")
    return TableError(
        f"{name} is not {shown}: {reason}. Files of Windows and old Excel are often in cp1252: add "
        "--encoding cp1252; or save the file as UTF-8."
    )
