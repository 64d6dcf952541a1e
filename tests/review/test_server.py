"""The server: who is let in, what is answered, and that nobody's work is overwritten in silence."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import uvicorn

from archehr.review.journal import Journal
from archehr.review.server import PAGE, make_app, new_token
from archehr.review.session import Session
from archehr.review.subject import Subject
from tests.review.conftest import CASES
from tests.review.review_page import review_server

ODD = '</textarea><script>alert("x")</script> & "quoted" é 😀'


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]


class Client:
    """Speaks to a session's server as a browser would, or as somebody else."""

    def __init__(self, address: str, session: Session) -> None:
        parts = urlsplit(address)
        self.port, self.base, self.session = parts.port or 0, parts.path, session

    def ask(self, method: str, path: str, body: Any = None, *, base: str | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        own = {"host": f"127.0.0.1:{self.port}", "origin": f"http://127.0.0.1:{self.port}"}
        if method == "GET":
            del own["origin"]
        sent = {**own, "content-type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
        raw = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        connection.putrequest(method, (self.base if base is None else base) + path, skip_host=True)
        for name, value in {**sent, **({"content-length": str(len(raw))} if raw is not None else {})}.items():
            if value:
                connection.putheader(name, value)
        connection.endheaders(raw)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        is_json = response.headers.get_content_type() == "application/json"
        return Answer(response.status, json.loads(text) if is_json else text, dict(response.headers))

    def act(self, *steps: dict[str, Any], version: int = 0, case: str = "101", **headers: str) -> Answer:
        return self.ask("POST", "act", {"case": case, "version": version, "steps": list(steps)}, **headers)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    subject = Subject("data", tmp_path, {c.id: c for c in CASES}, {})
    with Journal(tmp_path / "review/ann.jsonl") as journal:
        session = Session(subject, journal, "ann", list(subject.cases))
        listening = socket.create_server(("127.0.0.1", 0))
        port, token = listening.getsockname()[1], new_token()
        server = uvicorn.Server(uvicorn.Config(make_app(session, port, token), log_config=None, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield Client(f"http://127.0.0.1:{port}/{token}/", session)
        server.should_exit = True
        thread.join(20)


def test_the_page_comes_with_a_policy_that_forbids_everything_but_its_own_files(client: Client) -> None:
    page = client.ask("GET", "")
    assert page.status == 200 and "archehr review" in page.body
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert (page.headers["cache-control"], page.headers["referrer-policy"]) == ("no-store", "no-referrer")


def test_the_page_has_no_script_inline_and_nothing_from_elsewhere() -> None:
    html = (PAGE / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*src=)|\son\w+=|\sstyle=|<style", html) == []
    for path in PAGE.iterdir():
        text = path.read_text()
        assert [u for u in re.findall(r"https?://[^\s\"')]+", text) if "w3.org/2000/svg" not in u] == [], path
        assert "innerHTML" not in text and "insertAdjacentHTML" not in text


def test_every_file_of_the_page_is_served_and_no_other(client: Client) -> None:
    for path in PAGE.iterdir():
        assert client.ask("GET", path.name).body == path.read_text(encoding="utf-8")
    for name in ("server.py", "../server.py", "%2e%2e/server.py", "..%2fserver.py", "none.js", "a/b"):
        assert client.ask("GET", name).status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:{port}"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1:1"},
        {"host": ""},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "https://127.0.0.1:{port}"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
def test_other_names_and_other_pages_are_not_let_in(client: Client, headers: dict[str, str]) -> None:
    named = {name: value.format(port=client.port) for name, value in headers.items()}
    assert client.ask("GET", "cases", **named).status in (400, 403)
    assert client.act({"do": "mark_rest"}, **named).status in (400, 403)
    assert client.ask("GET", "cases").body["cases"][0]["status"] == "new"


def test_a_post_without_an_origin_or_as_a_form_is_refused(client: Client) -> None:
    assert client.act({"do": "mark_rest"}, origin="").status == 403
    assert client.act({"do": "mark_rest"}, content_type="text/plain").status == 415
    assert client.ask("GET", "act").status == 404


def test_localhost_is_this_machine_too(client: Client) -> None:
    assert client.ask("GET", "", host=f"localhost:{client.port}").status == 200
    mixed = client.act({"do": "mark_rest"}, host=f"localhost:{client.port}")
    assert mixed.status == 403, "the origin is another name"


@pytest.mark.parametrize("base", ["/", "/cases/", "/wrong-token/", "//", "/%00/"])
def test_without_the_token_nothing_is_told(client: Client, base: str) -> None:
    answer = client.ask("GET", "cases", base=base)
    assert answer.status == 403 and "token" in answer.body
    assert client.ask("GET", "", base=client.base[:-2] + "/").status == 403


def test_texts_come_back_as_they_went_in(client: Client) -> None:
    client.act({"do": "question", "text": ODD}, {"do": "remark", "text": ODD})
    state = client.ask("GET", "case?id=101").body["state"]
    assert (state["question"], state["remark"]) == (ODD, ODD)


def test_an_action_on_an_older_version_is_told_and_changes_nothing(client: Client) -> None:
    first = client.act({"do": "question", "text": "First?"})
    assert (first.status, first.body["state"]["version"]) == (200, 1)
    late = client.act({"do": "question", "text": "Second?"}, version=0)
    assert late.status == 409 and "another window" in late.body["error"]
    assert client.ask("GET", "case?id=101").body["state"]["question"] == "First?"


def test_actions_that_overtake_those_before_them_are_waited_for(client: Client) -> None:
    answers: list[Answer] = []
    late = threading.Thread(target=lambda: answers.append(client.act({"do": "remark", "text": "b"}, version=1)))
    late.start()
    time.sleep(0.2)
    client.act({"do": "remark", "text": "a"})
    late.join()
    assert answers[0].status == 200 and answers[0].body["state"]["remark"] == "b"


def test_what_comes_before_a_refused_action_is_kept_and_the_refusal_is_told(client: Client) -> None:
    done = client.act({"do": "question", "text": "Why?"}, {"do": "undo"}, {"do": "undo"}, {"do": "remark", "text": "x"})
    assert done.status == 422 and done.body["error"] == "There is nothing to undo."
    assert (done.body["state"]["version"], done.body["state"]["remark"]) == (2, "")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        {"case": "101"},
        {"case": "101", "version": 0, "steps": [{"do": "format_disk"}]},
        {"case": "101", "version": 0, "steps": [{"do": "mark", "sentence": "1", "value": "perhaps"}]},
        {"case": "101", "version": 0, "steps": [], "seconds": -1},
        {"case": "101", "version": 0, "steps": [{"do": "remark", "text": "\x00"}]},
        b'{"case": "101", "version": 0, "steps": [{"do": "remark", "text": "\\ud800"}]}',
    ],
)
def test_what_is_no_action_is_refused_without_a_trace(client: Client, body: Any) -> None:
    answer = client.ask("POST", "act", body)
    assert answer.status == 422 and answer.body["error"]
    assert client.session.journal.path.read_bytes() == b""


def test_too_much_and_too_unknown(client: Client) -> None:
    assert client.ask("POST", "act", b" " * 1_000_001).status == 413
    assert client.act({"do": "mark_rest"}, case="nobody").status == 404
    assert client.ask("GET", "case?id=nobody").status == 404


def test_a_blind_case_tells_nothing_of_the_program_before_it_is_marked(run: Path) -> None:
    with review_server(run, "--blind", "1") as served:
        client = Client(served.address, None)  # type: ignore[arg-type]
        for case in ("101", "102", "103", "104"):
            view = client.ask("GET", f"case?id={case}").body
            assert view["program"] is None and view["state"]["answer"] == []
            assert set(view["state"]["marks"].values()) == {None}
        done = client.act({"do": "mark_rest"}, {"do": "reveal"})
        assert done.status == 200 and done.body["state"]["answer"]
        assert client.ask("GET", "case?id=101").body["program"]["scores"]
        told = served.stop()
    assert "0 of 4 cases are finished" in told
    assert served.process.returncode == 0
