"""Settings and limits of a server."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address

from ulr.classifier import Fitted
from ulr.encoders import AnyEncoder
from ulr.errors import InputError

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class ServerSettings:
    """Settings and limits of a server."""

    encoder: str | AnyEncoder = "auto"  # of the page; it must encode texts
    model: Fitted | None = None  # answers ``/api/predict``
    host: str = "127.0.0.1"  # another address than this computer's needs a token
    allowed_hosts: tuple[str, ...] = ()  # further names by which browsers may address the server
    token: str | None = None  # every request must carry it
    max_upload: int = 100 * MEGABYTE  # bytes of a file; other requests may have 10 MB
    max_rows: int = 200_000  # of a table
    max_labels: int = 200  # of a session
    max_phrases: int = 50  # of a label
    max_sessions: int = 100  # the least recently used are dropped
    max_total_rows: int = 1_000_000  # of all sessions; the least recently used are dropped
    max_texts: int = 1_000  # of one prediction
    workers: int = 2  # classifications that run at the same time; others wait

    def __post_init__(self) -> None:
        if not self.token and not is_loopback(self.host):
            raise InputError(
                f"the address {self.host} can be reached from other computers, so it needs a token."
            )


def is_loopback(host: str) -> bool:
    """Whether only programs on this computer can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
