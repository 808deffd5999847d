"""Puts the page, the API and the checks together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files

from anyio import CapacityLimiter
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from ulr import __version__
from ulr.errors import InputError
from ulr.threads import available_cores
from ulr.web.api import Server, router, session_router
from ulr.web.encoders import Encoders
from ulr.web.security import Guard, problem
from ulr.web.sessions import Conflict, Sessions
from ulr.web.settings import ServerSettings


def create_app(settings: ServerSettings | None = None) -> FastAPI:
    """The ASGI application of `ulr serve`, with the default settings if none are given."""
    settings = settings or ServerSettings()
    encoders = Encoders(settings.encoder)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sessions, predicting = Sessions(settings), CapacityLimiter(available_cores())
        app.state.server = Server(settings, encoders, sessions, predicting)
        try:
            yield
        finally:
            sessions.close()

    app = FastAPI(
        title="ulr",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,  # these pages load scripts from other servers
        redoc_url=None,
        lifespan=lifespan,
    )
    app.include_router(router)
    app.include_router(session_router)
    page = files("ulr.web") / "static" / "page.html"

    @app.get("/", include_in_schema=False)
    def show_page() -> FileResponse:
        return FileResponse(str(page), media_type="text/html")

    for path, package in (("/static/report", "ulr.report"), ("/static", "ulr.web")):
        app.mount(path, StaticFiles(directory=str(files(package) / "static")))
    for kind in (HTTPException, RequestValidationError, InputError, Exception):
        app.add_exception_handler(kind, _answer)
    app.add_middleware(Guard, settings=settings)
    return app


async def _answer(request: Request, error: Exception) -> JSONResponse:
    """The answer to a request that raised an error: one sentence."""
    if isinstance(error, HTTPException):
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        # Names of types, such as "list[str]", are no part of the request.
        parts = [str(part) for part in first["loc"] if part != "body"]
        place = ".".join(part for part in parts if part.isidentifier() or part.isdigit())
        return problem(422, f"{place or 'the request'}: {first['msg']}.")
    if isinstance(error, InputError):
        return problem(409 if isinstance(error, Conflict) else 400, str(error))
    return problem(500, "something went wrong on the server; its log has the details.")
