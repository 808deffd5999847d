"""Which requests are answered: checks of host, origin, token and size before any route.

A page of another site must not reach the server through a visitor's browser: its name must be one of
the server's own (no DNS rebinding), and requests that a browser marks as cross-site are refused.
"""

from __future__ import annotations

from hmac import compare_digest
from http.cookies import SimpleCookie
from ipaddress import ip_address
from socket import gethostname
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ulr.web.settings import MEGABYTE, ServerSettings

UPLOAD_PATH = "/api/sessions"
COOKIE = "ulr_token"
_OTHER_BODY = 10 * MEGABYTE
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Guard:
    """ASGI middleware that refuses requests and adds headers to every response."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app, self._settings = app, settings
        own = (settings.host, "localhost", "127.0.0.1", "::1", gethostname())
        self._hosts = {name.lower() for name in (*own, *settings.allowed_hosts)}
        self._any_address = settings.host in ("0.0.0.0", "::")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        caching = "no-store" if scope["path"].startswith("/api") else "no-cache"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("Cache-Control", caching)
            await send(message)

        answer = self._refusal(scope)
        if answer is not None:
            await answer(scope, receive, send_with_headers)
            return
        limit = self._settings.max_upload if scope["path"] == UPLOAD_PATH else _OTHER_BODY
        await self._app(scope, _limited(receive, limit), send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that does not get further; None for one that does."""
        headers = Headers(scope=scope)
        if not self._is_own_host(headers.get("host", "")):
            return problem(
                400, "this server is addressed by another name; add it with --allow-host."
            )
        if not _is_same_origin(scope, headers):
            return problem(403, "requests from other sites are refused.")
        if self._settings.token is None:
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if scope["path"] == "/" and given and self._is_token(given[0]):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(COOKIE, given[0], httponly=True, samesite="lax")
            return answer
        if self._is_token(_sent_token(headers)):
            return None
        if scope["path"].startswith("/api"):
            return problem(401, "this server needs a token: send 'Authorization: Bearer TOKEN'.")
        return PlainTextResponse("Open the address with the token that ulr serve printed.", 401)

    def _is_own_host(self, header: str) -> bool:
        try:
            name = urlsplit(f"//{header}").hostname or ""
            return name in self._hosts or (self._any_address and bool(ip_address(name)))
        except ValueError:
            return False

    def _is_token(self, given: str) -> bool:
        return compare_digest(given.encode(), (self._settings.token or "").encode())


def _is_same_origin(scope: Scope, headers: Headers) -> bool:
    """Whether a request comes from the page itself or from no page.

    A link on another page may open this one, but no other address.
    """
    site = headers.get("sec-fetch-site", "none")
    if site not in ("same-origin", "none") and (scope["method"], scope["path"]) != ("GET", "/"):
        return False
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2].lower() == headers["host"].lower()


def _sent_token(headers: Headers) -> str:
    kind, _, given = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return given.strip()
    cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    return "" if cookie is None else cookie.value


def _limited(receive: Receive, limit: int) -> Receive:
    """Receive at most so many bytes of a request."""
    received = 0

    async def receive_limited() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise HTTPException(413, f"at most {limit // MEGABYTE:,} MB can be sent.")
        return message

    return receive_limited


def problem(status: int, sentence: str) -> JSONResponse:
    """The answer to a request that cannot be answered."""
    return JSONResponse({"error": sentence}, status)
