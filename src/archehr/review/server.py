"""The web server of the page: this machine only, a token in the address, and every request held to its origin."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from archehr.data.case import DataError
from archehr.review.history import Step
from archehr.review.session import Session, Stale

PAGE = Path(__file__).parent / "page"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
LARGEST_BODY = 1_000_000

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Turn(BaseModel):
    """The body of a post: actions on a case, made one after the other on the `version` that the reviewer saw."""

    model_config = ConfigDict(extra="forbid")

    case: str
    version: int
    steps: list[Step]
    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(32)


def make_app(session: Session, port: int, token: str, seen: Callable[[], None] = lambda: None) -> ASGIApp:
    """The application for one reviewer on `port`; `seen` is called for every request that is let in."""

    files = {path.name: path for path in PAGE.iterdir() if path.suffix in TYPES}

    async def page(request: Request) -> Response:
        name = request.path_params.get("name") or "index.html"
        if name not in files:
            return PlainTextResponse("no such page", 404)
        return Response(files[name].read_bytes(), media_type=TYPES[files[name].suffix])

    def overview(request: Request) -> Response:
        return JSONResponse(session.overview())

    def view(request: Request) -> Response:
        try:
            return JSONResponse(session.view(request.query_params.get("id", "")))
        except KeyError:
            return _error(404, "This case is not under review.")

    async def act(request: Request) -> Response:
        if request.headers.get("content-type", "").split(";")[0] != "application/json":
            return _error(415, "Actions are JSON.")
        body = await request.body()
        if len(body) > LARGEST_BODY:
            return _error(413, "This is too long.")
        try:
            turn = Turn.model_validate_json(body)
        except ValidationError as error:
            return _error(422, error.errors(include_input=False, include_url=False)[0]["msg"])
        return await run_in_threadpool(_acted, session, turn)

    app = Starlette(
        routes=[
            Route(f"/{token}/", page),
            Route(f"/{token}/cases", overview),
            Route(f"/{token}/case", view),
            Route(f"/{token}/act", act, methods=["POST"]),
            Route(f"/{token}/{{name}}", page),
        ]
    )
    return Guard(app, port, token, seen)


def _acted(session: Session, turn: Turn) -> Response:
    try:
        state, refused = session.act(turn.case, turn.version, turn.steps, turn.seconds)
    except Stale:
        return _error(409, "This case was changed in another window.")
    except KeyError:
        return _error(404, "This case is not under review.")
    except DataError as error:
        return _error(507, str(error))
    if refused is not None:
        return JSONResponse({"error": refused, "state": state}, 422)
    return JSONResponse({"state": state})


def _error(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status)


class Guard:
    """Lets in only what this page in this browser asks for: the address must hold the token.

    A Host other than this address is a name that was pointed at this machine (DNS rebinding); another Origin, or
    none on a post, is a page of someone else. Sec-Fetch-Site says the same where a browser sends it.
    """

    def __init__(self, app: ASGIApp, port: int, token: str, seen: Callable[[], None]) -> None:
        self.app, self.token, self.seen = app, token.encode(), seen
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        if fault := self._fault(Request(scope)):
            await PlainTextResponse(fault, 403)(scope, receive, send_with_headers)
            return
        self.seen()
        await self.app(scope, receive, send_with_headers)

    def _fault(self, request: Request) -> str | None:
        hosts, origins = request.headers.getlist("host"), request.headers.getlist("origin")
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return "open the page by the address that archehr review printed"
        if not secrets.compare_digest(request.url.path.split("/")[1].encode(), self.token):
            return "this address holds no token, or that of an earlier archehr review"
        allowed: list[Any] = [[f"http://{hosts[0]}"]]
        if request.method in ("GET", "HEAD"):
            allowed.append([])  # a browser names no origin when it opens a page
        site = request.headers.get("sec-fetch-site", "same-origin")
        if origins not in allowed or site not in ("same-origin", "none"):
            return "asked for by another page"
        return None
