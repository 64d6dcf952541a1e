"""Runs the server of a session until Ctrl-C, or until nobody has used the page for a while."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from archehr.data.case import DataError
from archehr.review.server import make_app, new_token
from archehr.review.session import Session

LOOPBACK = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """A socket on loopback, on a free port where `port` is 0. Raises DataError for a port in use."""
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((LOOPBACK, port))
        listening.listen()  # from here on a browser that is quicker than the server waits
    except (OSError, OverflowError) as error:
        listening.close()
        raise DataError(f"--port {port}: cannot be used ({error}); leave it out for a free one") from None
    return listening


def serve(
    session: Session, listening: socket.socket, *, idle: float, browser: bool, tell: Callable[[str], None]
) -> bool:
    """Serve until Ctrl-C, or until no request has come for `idle` minutes, which makes it False; `tell` gets the
    address."""
    port = listening.getsockname()[1]
    clock = _Clock(idle * 60)
    token = new_token()
    config = uvicorn.Config(
        make_app(session, port, token, clock.reset),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
        server_header=False,
    )
    config.load()  # half of what it takes to start, in which nobody who has the address should wait
    server = uvicorn.Server(config)
    address = f"http://{LOOPBACK}:{port}/{token}/"
    with listening, _stopped_by_ctrl_c(server):
        tell(address)
        if browser:
            webbrowser.open(address)
        asyncio.run(_run(server, listening, clock))
    return not clock.ran_out


@contextmanager
def _stopped_by_ctrl_c(server: uvicorn.Server) -> Iterator[None]:
    """From before the address is told: uvicorn listens for Ctrl-C only once it runs, and asyncio loses one before."""
    before = signal.signal(signal.SIGINT, server.handle_exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)


async def _run(server: uvicorn.Server, listening: socket.socket, clock: _Clock) -> None:
    watching = asyncio.create_task(clock.watch(server))
    await server.serve([listening])
    watching.cancel()


class _Clock:
    """Asks the server to stop once no request has come for `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.ran_out = seconds, False
        self.reset()

    def reset(self) -> None:
        self.last = time.monotonic()

    async def watch(self, server: uvicorn.Server) -> None:
        while time.monotonic() < self.last + self.seconds:
            await asyncio.sleep(min(1.0, self.seconds))
        self.ran_out = server.should_exit = True
