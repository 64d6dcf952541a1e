"""Ctrl-C ends `archehr review` at once, at whatever moment it comes."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from archehr.review.journal import Journal, journal_path
from archehr.review.serve import listen, serve
from archehr.review.session import Session
from archehr.review.subject import read_subject
from tests.review.review_page import review_server

# Runs the command in this process, and presses Ctrl-C when it imports a module.
AT_AN_IMPORT = """
import runpy, signal, sys
pressed, sys.argv = sys.argv[1], ["archehr", *sys.argv[2:]]
sys.addaudithook(lambda event, given: event == "import" and given[0] == pressed and signal.raise_signal(signal.SIGINT))
runpy.run_module("archehr", run_name="__main__")
"""


@pytest.mark.parametrize("module", ["typer", "archehr.review.subject", "dspy", "uvicorn"])
def test_before_the_page_it_ends_without_a_traceback(run: Path, module: str) -> None:
    call = [sys.executable, "-c", AT_AN_IMPORT, module, "review", str(run), "--no-browser"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def then_pressed(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, after whose first end Ctrl-C is pressed."""
    pressed = False

    def calling(*given: Any, **named: Any) -> Any:
        nonlocal pressed
        done = call(*given, **named)
        if not pressed:
            pressed = True
            signal.raise_signal(signal.SIGINT)
        return done

    return calling


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN], ids=["as usual", "behind an &"])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (time, "monotonic"),
        (signal, "signal"),
        (asyncio.events, "new_event_loop"),
        (uvicorn.Server, "startup"),
        (uvicorn.Server, "on_tick"),
    ],
)
def test_from_the_address_on_it_stops_the_server(
    run: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder, owner: Any, name: str, handler: Any
) -> None:
    """Also where a shell script runs the command with &, which is ignored otherwise."""
    subject = read_subject(run, data_folder=Path)
    before = signal.signal(signal.SIGINT, handler)

    def tell(address: str) -> None:
        monkeypatch.setattr(owner, name, then_pressed(getattr(owner, name)))

    try:
        with Journal(journal_path(run, "ann")) as journal:
            session = Session(subject, journal, "ann", list(subject.cases))
            assert serve(session, listen(0), idle=0.1, browser=False, tell=tell), "not for want of use"
        assert signal.getsignal(signal.SIGINT) is handler and not list(recwarn)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_page_that_never_sends_what_it_began_holds_nothing_up(run: Path) -> None:
    with review_server(run) as served:
        _, _, host, path = served.address.rstrip("/").split("/")
        name, port = host.split(":")
        with socket.create_connection((name, int(port))) as slow:
            head = f"POST /{path}/act HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
            slow.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{{".encode())
            time.sleep(0.5)  # until the request is under way
            assert "0 of 4 cases are finished" in served.stop()
