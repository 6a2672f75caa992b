"""The server of the explorer: five files, and the views of a question as JSON, to pages of this address alone.

It listens on the loopback only. A request must name this address as its host, and as its origin where it names one: a
page of another site can then neither read an answer nor have one computed, whatever name it gives this machine.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from hockeystick.app.explore.answers import VIEWS
from hockeystick.app.explore.question import MOST_BYTES, BadQuestionError, question
from hockeystick.app.explore.workers import Workers

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = "127.0.0.1"

_FILES = {
    "/": ("explore.html", "text/html"),
    "/explore.css": ("explore.css", "text/css"),
    "/explore.js": ("explore.js", "text/javascript"),
    "/uPlot.iife.min.js": ("uplot/uPlot.iife.min.js", "text/javascript"),
    "/uPlot.min.css": ("uplot/uPlot.min.css", "text/css"),
}
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " connect-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_FETCHED_BY_OURS = frozenset({"same-origin", "none"})  # by this page, or by the address bar


def application(port: int, *, seconds: float = 20.0) -> Starlette:
    """The explorer as an ASGI application.

    Parameters
    ----------
    port : int
        Where it listens: part of the hosts and origins it accepts.
    seconds : float
        The time one answer may take.
    """
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.routing import Route

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        at_once, later = Workers(2, seconds=seconds), Workers(2, seconds=seconds, patience=19)
        app.state.workers = {view: at_once if view == "answer" else later for view in VIEWS}
        try:
            yield
        finally:
            at_once.close()
            later.close()

    routes = [Route(path, _file(*found), methods=["GET"]) for path, found in _FILES.items()]
    routes += [Route(f"/api/{view}", _view(view), methods=["POST"]) for view in VIEWS]
    return Starlette(routes=routes, middleware=[Middleware(_Guard, port=port)], lifespan=running)


class _Guard:
    """Refuses requests that come from elsewhere."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.hosts = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (refusal or self.app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        from starlette.requests import HTTPConnection
        from starlette.responses import JSONResponse

        headers = HTTPConnection(scope).headers
        origins, fetched = headers.getlist("origin"), headers.get("sec-fetch-site", "none")
        if headers.getlist("host") not in [[host] for host in self.hosts]:
            return JSONResponse({"error": "the Host header names another machine"}, 421, _HEADERS)
        if not all(origin in self.origins for origin in origins) or fetched not in _FETCHED_BY_OURS:
            return JSONResponse({"error": "the request comes from another site"}, 403, _HEADERS)
        return None


def _file(name: str, kind: str) -> Callable[[Request], Any]:
    async def respond(_: Request) -> Response:
        from starlette.responses import Response

        content = files("hockeystick.app.explore").joinpath("static", *name.split("/")).read_bytes()
        return Response(content, media_type=kind, headers=_HEADERS)

    return respond


def _view(view: str) -> Callable[[Request], Any]:
    async def respond(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse

        def told(status: int, document: dict[str, Any]) -> Response:
            return JSONResponse(document, status, _HEADERS)

        if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
            return told(415, {"error": "the body must be application/json"})
        body = await _body(request)
        if body is None:
            return told(413, {"error": f"the body must be at most {MOST_BYTES} bytes"})
        try:
            asked = question(body)
        except BadQuestionError as error:
            return told(400, {"error": str(error)})
        workers: Workers = request.app.state.workers[view]
        unwanted = threading.Event()
        watch = asyncio.ensure_future(_gone(request, unwanted))
        try:
            return told(*await run_in_threadpool(workers.ask, view, asked, unwanted))
        except asyncio.CancelledError:
            return told(503, {"error": "the server was stopped"})
        finally:
            watch.cancel()

    return respond


async def _gone(request: Request, unwanted: threading.Event) -> None:
    """Say so once the other end has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    unwanted.set()


async def _body(request: Request) -> bytes | None:
    """The body, read no further than it may be long; None where it is longer."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            return None
    return body


def serve(port: int, *, opened: Callable[[str], object]) -> None:
    """Serve the explorer until interrupted.

    Parameters
    ----------
    port : int
        Where to listen; 0 for any that is free.
    opened : callable
        Told the address once the socket listens.
    """
    import uvicorn

    listening = socket.create_server((LOOPBACK, port))
    # an answer is written in two pieces: without this the second would wait 40 ms for word of the first
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    port = listening.getsockname()[1]
    config = uvicorn.Config(
        application(port),
        log_level="warning",
        server_header=False,
        ws="none",
        limit_concurrency=64,
        h11_max_incomplete_event_size=16384,
        timeout_graceful_shutdown=1,
    )
    opened(f"http://{LOOPBACK}:{port}/")
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        return  # asked to stop, it did
    finally:
        listening.close()
