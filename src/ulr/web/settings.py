"""Settings and limits of a server."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address

from ulr.encoders import AnyEncoder
from ulr.errors import InputError
from ulr.model import Model

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Settings:
    """Settings and limits of a server.

    Attributes
    ----------
    encoder
        Name of the encoder of the page, or an encoder of texts.
    model
        The model that answers ``/api/predict``; None for none.
    host
        Address that the server listens on; one other than this computer's needs a token.
    allowed_hosts
        Further names by which browsers may address the server.
    token
        What every request must carry; None for none.
    max_upload
        Most bytes of an uploaded file; other requests may have 10 MB.
    max_rows, max_labels, max_phrases
        Most rows of a table, labels of a session, and phrases of a label.
    max_sessions, max_total_rows
        Most sessions, and rows of all of them; the least recently used are dropped.
    max_texts
        Most texts of one prediction.
    workers
        Classifications that run at the same time; others wait.
    """

    encoder: str | AnyEncoder = "static"
    model: Model | None = None
    host: str = "127.0.0.1"
    allowed_hosts: tuple[str, ...] = ()
    token: str | None = None
    max_upload: int = 100 * MEGABYTE
    max_rows: int = 200_000
    max_labels: int = 200
    max_phrases: int = 50
    max_sessions: int = 100
    max_total_rows: int = 1_000_000
    max_texts: int = 1_000
    workers: int = 2

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
