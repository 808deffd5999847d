"""`ulr serve`: a page to classify with in the browser, and an HTTP API."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from typing import Annotated

import typer

from ulr.classifier import Settings
from ulr.cli.console import plain_errors
from ulr.errors import InputError, require


def serve(
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="Folder of --save-model; POST /api/predict then classifies new texts with it.",
            show_default=False,
        ),
    ] = None,
    encoder: Annotated[
        str,
        typer.Option("--encoder", help="Turns texts into vectors; see 'ulr encoders'."),
    ] = str(Settings.encoder),
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; another needs a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port; 0 for any that is free.")
    ] = 8321,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="ULR_TOKEN",
            help="What every request must carry; generated for an address that others reach.",
            show_default=False,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", help="A further name of this server.", show_default=False),
    ] = None,
    max_upload: Annotated[
        int, typer.Option("--max-upload", min=1, help="Most megabytes of an upload.")
    ] = 100,
    max_rows: Annotated[
        int, typer.Option("--max-rows", min=1, help="Most rows of an upload.")
    ] = 200_000,
) -> None:
    """Serve a page to classify with in the browser; nothing leaves this computer.

    Upload or paste texts, name labels, look at the result, correct documents, download. Uploads are
    deleted when the server stops.

    [bold]Examples[/bold]

    ulr serve

    ulr serve --model news-model --port 9000
    """
    with plain_errors("uploaded data was deleted"):
        uvicorn = require("uvicorn", "web")
        require("fastapi", "web")
        from ulr.classifier import load
        from ulr.web import MEGABYTE, ServerSettings, create_app, is_loopback

        if token is None and not is_loopback(host):
            token = secrets.token_urlsafe(24)
        app = create_app(
            ServerSettings(
                encoder=encoder,
                # Requests already run at the same time.
                model=None if model is None else load(model).with_settings(n_jobs=1),
                host=host,
                allowed_hosts=tuple(allow_host or ()),
                token=token,
                max_upload=max_upload * MEGABYTE,
                max_rows=max_rows,
            )
        )
        config = uvicorn.Config(
            app,
            log_level="warning",
            server_header=False,
            # Longer than that of clients, which would meet a closed connection otherwise.
            timeout_keep_alive=75,
            timeout_graceful_shutdown=3,
        )

        class AnnouncingServer(uvicorn.Server):  # type: ignore[misc,name-defined]
            """Prints the address once the server answers."""

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                _announce(host, listener.getsockname()[1], token, is_loopback(host))

        with listen(host, port) as listener:
            AnnouncingServer(config).run([listener])


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on an address; 0 is any free port."""
    try:
        # asyncio sends small answers without delay only where the protocol of a socket is given.
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            if os.name == "posix":  # elsewhere it lets two servers have the same port
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(512)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        raise InputError(
            f"cannot listen on {host} port {port}: {error.strerror}; choose another with --port."
        ) from None
    return listener


def _announce(host: str, port: int, token: str | None, local: bool) -> None:
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{port}/"
    if token is not None:
        address += f"?token={token}"
    who = "only programs on this computer reach it" if local else "other computers can reach it"
    print(f"ulr: open {address} in a browser; {who}. Ctrl-C ends it.", file=sys.stderr, flush=True)
