"""Routes of the HTTP API, and the models of what they take and return."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect

from ulr import __version__
from ulr.encoders import Encoder
from ulr.jobs import text_columns
from ulr.web.classification import classify
from ulr.web.downloads import Format, What, write_download
from ulr.web.jobs import Job, Jobs, Progress
from ulr.web.security import UPLOAD_PATH
from ulr.web.sessions import Conflict, Result, Session, SessionLabel, Sessions, as_info
from ulr.web.settings import Settings

EXAMPLE = "news_blurbs.csv"
EXAMPLE_COLUMNS = ("headline", "summary")
EXAMPLE_LABELS = ("politics", "sports", "business", "science", "culture")
_TEXT = Field(max_length=100_000)


@dataclass(frozen=True)
class Server:
    """What the routes share.

    Attributes
    ----------
    settings, encoder
        Settings, and the encoder of the page.
    sessions, jobs
        What people have uploaded, and their running classifications.
    predicting
        Limits predictions at the same time to the number of cores; more threads only wait for each
        other.
    """

    settings: Settings
    encoder: Encoder
    sessions: Sessions
    jobs: Jobs
    predicting: CapacityLimiter


class Problem(BaseModel):
    """An error."""

    error: str = Field(description="One sentence: what was wrong and what would work.")


class Limits(BaseModel):
    """Limits of the server."""

    upload_bytes: int
    rows: int
    labels: int
    phrases: int
    texts: int


class Status(BaseModel):
    """The server."""

    version: str
    encoder: str
    predicts: bool = Field(description="Whether /api/predict has a model.")
    labels: list[str] = Field(description="Labels of that model.")
    limits: Limits


class LabelInput(BaseModel):
    """A label as it is given."""

    id: int | None = Field(None, description="Of a label that is kept or renamed; none if new.")
    name: str = Field(min_length=1, max_length=200)
    phrases: list[Annotated[str, Field(max_length=500)]] = Field(
        [], description="Words that describe it; the name if there are none."
    )


class Correction(BaseModel):
    """A document that was given a label."""

    row: int
    label: str


class SessionInfo(BaseModel):
    """The state of a session."""

    id: str
    name: str
    rows: int
    columns: list[str]
    preview: list[list[str]] = Field(description="The first rows.")
    text_columns: list[str] = Field(description="The chosen columns, or a suggestion.")
    labels: list[SessionLabel]
    suggested_labels: list[str]
    corrections: list[Correction]
    result: int | None = Field(description="Number of the latest result.")
    outdated: bool = Field(description="Whether labels or corrections changed since the result.")
    can_undo: bool
    job: Progress | None


class RunInput(BaseModel):
    """What to classify."""

    columns: list[str] = Field(max_length=100, description="Text columns; joined by a space.")
    labels: list[LabelInput]


class CorrectionInput(BaseModel):
    """A label for documents."""

    rows: list[int] = Field(min_length=1, max_length=10_000, description="From 1.")
    label: str | None = Field(description="Name of a label; null takes the correction back.")


class ViewLabel(BaseModel):
    """A label of a result."""

    id: int
    name: str
    phrases: list[str]
    before: int = Field(description="Documents before refinement.")
    after: int
    words: list[str]
    anchor: tuple[float, float] = Field(description="Place of its name on the map.")
    centroid: tuple[float, float]


class ViewDocuments(BaseModel):
    """Documents of a result by column; labels are positions in the list of labels."""

    row: list[int]
    text: list[str] = Field(description="Beginnings of the texts.")
    label: list[int]
    unrefined: list[int]
    second: list[int]
    confidence: list[float]
    second_confidence: list[float]
    x: list[float]
    y: list[float]
    truth: list[int]


class View(BaseModel):
    """A result: at most 5,000 documents, and counts over all."""

    result: int
    title: str
    columns: list[str]
    documents: ViewDocuments
    labels: list[ViewLabel]
    flows: list[tuple[int, int, int]] = Field(description="Label before, after, documents.")
    all_documents: int
    labelled_documents: int
    moved: int
    corrections: list[tuple[int, str]] = Field(description="Rows and labels that took part.")
    seconds: float
    diagnosis: dict[str, Any] | None
    previous: list[str | None] = Field(description="Label in the result before, if another.")
    changes: list[tuple[str, str, int]] = Field(description="Label before, now, documents.")
    next: list[int] = Field(description="Documents to check next.")


class Document(BaseModel):
    """One document."""

    row: int
    text: str
    probabilities: dict[str, float]


class PredictInput(BaseModel):
    """One text or several."""

    texts: Annotated[str, _TEXT] | list[Annotated[str, _TEXT]]


class Prediction(BaseModel):
    """The label of a text; null for a text without known words."""

    label: str | None
    confidence: float
    unrefined: str | None


class Predicted(BaseModel):
    """Labels of texts, in their order."""

    predictions: list[Prediction]


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Problem} for status in (400, 401, 403, *statuses)}


router = APIRouter(responses=_problems(413, 422))


def _server(request: Request) -> Server:
    server: Server = request.app.state.server
    return server


AnyServer = Annotated[Server, Depends(_server)]


def _session(server: AnyServer, session_id: str) -> Session:
    session = server.sessions.get(session_id)
    if session is None:
        raise HTTPException(404, "this session has ended; upload the file again.")
    return session


AnySession = Annotated[Session, Depends(_session)]


def _result(session: AnySession) -> Result:
    if session.result is None:
        raise Conflict("there is no result yet; classify first.")
    return session.result


AnyResult = Annotated[Result, Depends(_result)]


@router.get("/api/status")
def status(server: AnyServer) -> Status:
    """Version, encoder and limits of the server."""
    settings = server.settings
    return Status(
        version=__version__,
        encoder=getattr(server.encoder, "spec", None) or type(server.encoder).__name__,
        predicts=settings.model is not None,
        labels=[] if settings.model is None else list(settings.model.label_set.names),
        limits=Limits(
            upload_bytes=settings.max_upload,
            rows=settings.max_rows,
            labels=settings.max_labels,
            phrases=settings.max_phrases,
            texts=settings.max_texts,
        ),
    )


@router.post(
    UPLOAD_PATH,
    status_code=201,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
            },
        }
    },
)
async def upload(
    server: AnyServer,
    request: Request,
    name: Annotated[str, Query(max_length=300, description="Name of the file.")] = "upload",
) -> SessionInfo:
    """Begin a session with a file: the body is its content."""
    folder = server.sessions.new_folder()
    try:
        with (folder / "data").open("wb") as file:
            async for part in request.stream():
                await run_sync(file.write, part)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, ClientDisconnect):
            raise HTTPException(400, "the upload ended early.") from None
        raise
    return await run_sync(lambda: _info(server.sessions.create(name, folder)))


@router.post("/api/example", status_code=201)
def example(server: AnyServer) -> SessionInfo:
    """Begin a session with the example: short news of five sections."""
    folder = server.sessions.new_folder()
    content = (files("ulr.web") / "examples" / EXAMPLE).read_bytes()
    (folder / "data").write_bytes(content)
    session = server.sessions.create(EXAMPLE, folder)
    session.suggested_columns, session.suggested_labels = EXAMPLE_COLUMNS, EXAMPLE_LABELS
    return _info(session)


@router.get("/api/sessions/{session_id}", responses=_problems(404))
def session_state(session: AnySession) -> SessionInfo:
    """The state of a session."""
    return _info(session)


@router.delete("/api/sessions/{session_id}", status_code=204, responses=_problems(404))
def end_session(server: AnyServer, session: AnySession) -> None:
    """End a session and delete its data."""
    server.sessions.drop(session.id)


@router.post("/api/sessions/{session_id}/run", status_code=202, responses=_problems(404, 409))
def run(server: AnyServer, session: AnySession, given: RunInput) -> SessionInfo:
    """Classify the documents, in the background; corrected documents are known examples."""
    columns = tuple(text_columns(session.table, given.columns))
    with session.lock:
        if session.job is not None and session.job.is_active:
            raise Conflict("this session is being classified; wait or cancel first.")
        session.set_labels([(each.id, each.name, each.phrases) for each in given.labels])
        choices, session.job = session.choices, Job()
        server.jobs.start(
            session.job, lambda job: classify(session, choices, columns, server.encoder, job)
        )
    return _info(session)


@router.get("/api/sessions/{session_id}/job", responses=_problems(404, 409))
def job_state(session: AnySession) -> Progress:
    """How far the classification is."""
    if session.job is None:
        raise Conflict("nothing has been classified yet.")
    return session.job.progress


@router.delete("/api/sessions/{session_id}/job", status_code=202, responses=_problems(404, 409))
def cancel_job(session: AnySession) -> Progress:
    """Cancel the classification."""
    if session.job is None:
        raise Conflict("nothing has been classified yet.")
    session.job.cancel()
    return session.job.progress


@router.get("/api/sessions/{session_id}/view", response_model=View, responses=_problems(404, 409))
def view(result: AnyResult) -> Response:
    """The latest result."""
    return Response(result.view, media_type="application/json")


@router.get("/api/sessions/{session_id}/documents/{row}", responses=_problems(404, 409))
def document(session: AnySession, result: AnyResult, row: int) -> Document:
    """One document, with the probability of each label."""
    if not 1 <= row <= session.n_rows:
        raise HTTPException(404, f"there is no row {row}; rows are 1 to {session.n_rows}.")
    names = result.classifier.model_.label_set.names
    probabilities = result.predictions.probabilities[row - 1].round(4).tolist()
    return Document(
        row=row,
        text=result.corpus.texts[row - 1],
        probabilities=dict(zip(names, probabilities, strict=True)),
    )


@router.post("/api/sessions/{session_id}/corrections", responses=_problems(404, 409))
def correct(session: AnySession, given: CorrectionInput) -> SessionInfo:
    """Give documents a label; they are known examples in the next run."""
    session.correct([row - 1 for row in given.rows], given.label)
    return _info(session)


@router.post("/api/sessions/{session_id}/undo", responses=_problems(404, 409))
def undo(session: AnySession) -> SessionInfo:
    """Take back the latest change of labels or corrections."""
    session.undo()
    return _info(session)


@router.get(
    "/api/sessions/{session_id}/download/{what}",
    response_class=FileResponse,
    responses=_problems(404, 409) | {200: {"content": {"application/octet-stream": {}}}},
)
def download(
    session: AnySession, result: AnyResult, what: What, format: Format = "csv"
) -> FileResponse:
    """The table with labels, the label file, the corrected examples, the model or the report."""
    path, name = write_download(session, result, what, format)
    return FileResponse(
        path,
        media_type="application/octet-stream",
        filename=name,
        background=BackgroundTask(Path.unlink, path, missing_ok=True),
    )


@router.post("/api/predict", responses=_problems(404))
async def predict(server: AnyServer, given: PredictInput) -> Predicted:
    """Labels of new texts by the model of ``ulr serve --model``."""
    model, limit = server.settings.model, server.settings.max_texts
    if model is None:
        raise HTTPException(404, "this server has no model; start it with --model FOLDER.")
    texts = [given.texts] if isinstance(given.texts, str) else given.texts
    if len(texts) > limit:
        raise HTTPException(413, f"at most {limit:,} texts per request; got {len(texts):,}.")
    if not texts:
        return Predicted(predictions=[])
    found = await run_sync(model.predict, texts, limiter=server.predicting)
    columns = (model.names[found.labels], found.confidence.tolist(), model.names[found.unrefined])
    return Predicted(
        predictions=[
            Prediction(label=str(one) or None, confidence=sure, unrefined=str(other) or None)
            for one, sure, other in zip(*columns, strict=True)
        ]
    )


def _info(session: Session) -> SessionInfo:
    return SessionInfo(**as_info(session))
