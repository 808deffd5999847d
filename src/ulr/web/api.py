"""Routes of the HTTP API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect

from ulr import __version__
from ulr.classifier import Explanation, explain
from ulr.jobs import text_columns
from ulr.labels import parse_labels
from ulr.web import schemas
from ulr.web.classification import classify, look_for_labels
from ulr.web.downloads import Format, What, write_download
from ulr.web.encoders import Encoders
from ulr.web.jobs import Job, JobState
from ulr.web.lists import labels_of_list
from ulr.web.security import UPLOAD_PATH
from ulr.web.sessions import Conflict, Options, Run, Session, Sessions
from ulr.web.settings import ServerSettings

EXAMPLE = "news_blurbs.csv"
EXAMPLE_COLUMNS = ("headline", "summary")
EXAMPLE_LABELS = ("politics", "sports", "business", "science", "culture")


@dataclass(frozen=True)
class Server:
    """What the routes share."""

    settings: ServerSettings
    encoders: Encoders
    sessions: Sessions
    predicting: CapacityLimiter  # as many at a time as cores; more only wait for each other


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": schemas.Problem} for status in (400, 401, 403, *statuses)}


router = APIRouter(responses=_problems(413, 422))
session_router = APIRouter(
    prefix=UPLOAD_PATH + "/{session_id}", responses=_problems(404, 409, 413, 422)
)


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


def _latest_run(session: AnySession) -> Run:
    if session.run is None:
        raise Conflict("there is no result yet; classify first.")
    return session.run


AnyRun = Annotated[Run, Depends(_latest_run)]


def _job(session: AnySession) -> Job:
    if session.job is None:
        raise Conflict("nothing has been classified yet.")
    return session.job


AnyJob = Annotated[Job, Depends(_job)]


@router.get("/api/status")
def status(server: AnyServer) -> schemas.Status:
    """Version, encoder and limits of the server."""
    settings = server.settings
    return schemas.Status(
        version=__version__,
        encoder=server.encoders.name,
        encoders=list(server.encoders.choices.values()),
        predicts=settings.model is not None,
        labels=[] if settings.model is None else list(settings.model.settings.label_set.names),
        limits=schemas.Limits(
            upload_bytes=settings.max_upload,
            rows=settings.max_rows,
            labels=settings.max_labels,
            phrases=settings.max_phrases,
            texts=settings.max_texts,
        ),
    )


@router.post("/api/labels")
def read_labels(given: schemas.LabelText) -> schemas.Labels:
    """Read a label file or a pasted list of labels; nothing is kept."""
    name, text = given.name, given.text
    found = labels_of_list(text) if name is None else parse_labels(text, name)
    return schemas.Labels(labels=[schemas.NamedLabel(**vars(label)) for label in found])


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
) -> schemas.SessionInfo:
    """Begin a session with a file: the body is its content."""
    with server.sessions.new_folder() as folder:
        try:
            with (folder / "data").open("wb") as file:
                async for part in request.stream():
                    await run_sync(file.write, part)
        except ClientDisconnect:
            raise HTTPException(400, "the upload ended early.") from None
        return await run_sync(lambda: _info(server.sessions.create(name, folder)))


@router.post("/api/example", status_code=201)
def example(server: AnyServer) -> schemas.SessionInfo:
    """Begin a session with the example: short news of five sections."""
    with server.sessions.new_folder() as folder:
        content = (files("ulr.web") / "examples" / EXAMPLE).read_bytes()
        (folder / "data").write_bytes(content)
        session = server.sessions.create(EXAMPLE, folder)
    session.suggested_columns, session.suggested_labels = EXAMPLE_COLUMNS, EXAMPLE_LABELS
    return _info(session)


@session_router.get("")
def session_state(session: AnySession) -> schemas.SessionInfo:
    """The state of a session."""
    return _info(session)


@session_router.delete("", status_code=204)
def end_session(server: AnyServer, session: AnySession) -> None:
    """End a session and delete its data."""
    server.sessions.drop(session.id)


@session_router.post("/run", status_code=202)
def run(server: AnyServer, session: AnySession, given: schemas.RunInput) -> schemas.SessionInfo:
    """Classify the documents, in the background; corrected documents are known examples."""
    options = Options(
        columns=tuple(text_columns(session.table, given.columns)),
        encoder=server.encoders.check(given.encoder),
        none_share=given.none_share,
    )
    with session.lock:
        _check_no_job(session)
        session.set_labels([(each.id, each.name, each.phrases) for each in given.labels])
        session.options = options
        work = partial(classify, session, session.choices, options, server.encoders)
        _start_job(server, session, work)
    return _info(session)


def _check_no_job(session: Session) -> None:
    if session.job is not None and session.job.is_active:
        raise Conflict("this session is being classified; wait or cancel first.")


def _start_job(server: Server, session: Session, work: Callable[[Job], None]) -> None:
    with session.lock:
        _check_no_job(session)
        session.job = Job()
        server.sessions.threads.submit(session.job.run, work)


@session_router.get("/job")
def job_state(job: AnyJob) -> JobState:
    """How far the classification is."""
    return job.state


@session_router.delete("/job", status_code=202)
def cancel_job(job: AnyJob) -> JobState:
    """Cancel the classification."""
    job.cancel()
    return job.state


@session_router.get("/view", response_model=schemas.View)
def view(latest: AnyRun) -> Response:
    """The latest result."""
    return Response(latest.view, media_type="application/json")


@session_router.post("/suggestions", status_code=202)
def look_for_suggestions(
    server: AnyServer, session: AnySession, latest: AnyRun
) -> schemas.SessionInfo:
    """Look for missing labels, labels to merge or to split, and phrases, in the background."""
    _start_job(server, session, partial(look_for_labels, session, latest))
    return _info(session)


@session_router.get("/suggestions", response_model=schemas.Suggested)
def suggestions(session: AnySession) -> Response:
    """The latest suggestions; nothing of them is applied."""
    if not session.suggestions:
        raise Conflict("there are no suggestions yet; ask for them first.")
    return Response(session.suggestions, media_type="application/json")


def _existing_row(session: AnySession, row: int) -> int:
    if not 1 <= row <= session.n_rows:
        raise HTTPException(404, f"there is no row {row}; rows are 1 to {session.n_rows}.")
    return row


AnyRow = Annotated[int, Depends(_existing_row)]


@session_router.get("/documents/{row}/why")
async def why(server: AnyServer, latest: AnyRun, row: AnyRow) -> Explanation:
    """The words of a document that spoke for its label, and for the runner-up."""
    text, found = (
        latest.corpus.documents.texts[row - 1],
        latest.predictions.rows(slice(row - 1, row)),
    )
    explaining = partial(explain, latest.fitted, [text], predictions=found)
    return (await run_sync(explaining, limiter=server.predicting))[0]


@session_router.get("/documents/{row}")
def document(latest: AnyRun, row: AnyRow) -> schemas.Document:
    """One document, with the probability of each label."""
    probabilities = latest.predictions.rows(slice(row - 1, row)).probabilities[0].round(4).tolist()
    return schemas.Document(
        row=row,
        text=latest.corpus.documents.texts[row - 1],
        probabilities=dict(zip(latest.fitted.names[:-1].tolist(), probabilities, strict=True)),
    )


@session_router.post("/corrections")
def correct(session: AnySession, given: schemas.CorrectionInput) -> schemas.SessionInfo:
    """Give documents a label, or none of these; they are known in the next run."""
    session.correct([row - 1 for row in given.rows], given.label)
    return _info(session)


@session_router.post("/undo")
def undo(session: AnySession) -> schemas.SessionInfo:
    """Take back the latest change of labels or corrections."""
    session.undo()
    return _info(session)


@session_router.get(
    "/download/{what}",
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def download(
    session: AnySession, latest: AnyRun, what: What, format: Format = "csv"
) -> FileResponse:
    """The table with labels, the label file, the corrected examples, the model or the report."""
    path, name = write_download(session, latest, what, format)
    return FileResponse(
        path,
        media_type="application/octet-stream",
        filename=name,
        background=BackgroundTask(Path.unlink, path, missing_ok=True),
    )


@router.post("/api/predict", responses=_problems(404))
async def predict(server: AnyServer, given: schemas.PredictInput) -> schemas.Predicted:
    """Labels of new texts by the model of ``ulr serve --model``."""
    model, limit = server.settings.model, server.settings.max_texts
    if model is None:
        raise HTTPException(404, "this server has no model; start it with --model FOLDER.")
    texts = [given.texts] if isinstance(given.texts, str) else given.texts
    if len(texts) > limit:
        raise HTTPException(413, f"at most {limit:,} texts per request; got {len(texts):,}.")
    if not texts:
        return schemas.Predicted(predictions=[])
    found = await run_sync(model.predict, texts, limiter=server.predicting)
    columns = (model.names[found.labels], found.confidence.tolist(), model.names[found.unrefined])
    return schemas.Predicted(
        predictions=[
            schemas.Prediction(
                label=str(one) or None, confidence=sure, unrefined=str(other) or None
            )
            for one, sure, other in zip(*columns, strict=True)
        ]
    )


def _info(session: Session) -> schemas.SessionInfo:
    with session.lock:
        choices, options, latest = session.choices, session.options, session.run
        names = choices.names()
        return schemas.SessionInfo(
            id=session.id,
            name=session.name,
            rows=session.n_rows,
            columns=list(session.table.columns),
            preview=session.preview,
            text_columns=list(options.columns if options else session.suggested_columns),
            encoder=None if options is None else options.encoder,
            none_share=None if options is None else options.none_share,
            labels=list(choices.labels),
            suggested_labels=list(session.suggested_labels),
            corrections=[
                schemas.Correction(row=row + 1, label=names[label])
                for row, label in choices.corrections.items()
            ],
            result=None if latest is None else latest.number,
            outdated=latest is not None and latest.choices != choices,
            can_undo=bool(session.undo_steps),
            job=None if session.job is None else session.job.state,
        )
