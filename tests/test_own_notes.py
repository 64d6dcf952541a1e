"""The walk of a hospital's engineer: every command of docs/own-notes.md answers, on a small file of its kind."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pandas as pd
import pytest

from tests import sources
from tests.sources import NEW, OLD, WORDS
from tests.stub_server import StubServer
from tests.walks import blocks, exported, give_modules_of_our_names, ran

LINES = [line for block in blocks("own-notes.md", "sh") for line in block.splitlines()]
COMMANDS = [line for line in LINES if line.startswith("archehr ")]


def make_sources(folder: Path) -> None:
    """Every file that a command of the page names."""
    table = pd.DataFrame({"id": ["a", "b"], "message": [WORDS, "When?"], "note": [NEW, OLD]})
    table.to_csv(folder / "notes.csv", index=False)
    table.to_json(folder / "notes.jsonl", orient="records", lines=True)
    table.to_parquet(folder / "notes.parquet")
    table.rename(columns={"message": "Q", "note": "TEXT"}).to_csv(folder / "export.tsv", sep="\t", index=False)
    (folder / "notes").mkdir()
    (folder / "notes/a.txt").write_text(NEW)
    (folder / "notes/table.csv").write_text(f"id,message\na,{WORDS}\n")
    (folder / "discharge.csv.gz").write_bytes(gzip.compress(sources.MIMIC.encode()))
    (folder / "asked.csv").write_text(f"subject_id,message\n10,{WORDS}\n")
    (folder / "omop.csv").write_text(sources.OMOP)
    pd.read_csv(folder / "omop.csv").to_parquet(folder / "note.parquet")
    (folder / "asked_omop.csv").write_text(f"person_id,message\n7,{WORDS}\n")
    sources.write_json(folder / "bundle.json", sources.synthea())
    sources.write_ndjson(folder / "bulk.ndjson", *(e["resource"] for e in sources.synthea()["entry"]))
    (folder / "bundles").mkdir()
    sources.write_json(folder / "bundles/one.json", sources.hapi())
    (folder / "letter.pdf").write_bytes(sources.pdf(*NEW.split("\n")))
    (folder / "letter.rtf").write_text(sources.RTF)
    (folder / "letter.html").write_text(sources.HTML)
    (folder / "letter.docx").write_bytes(sources.docx(*NEW.split("\n")))


def walk(folder: Path, **exports: str) -> dict[str, str]:
    """What every command of the page prints, run one after the other by one process in the user's folder."""
    give_modules_of_our_names(folder)
    make_sources(folder)
    done = ran(folder, "-c", WALK, *COMMANDS, **exports)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split("\0")[1:]
    codes = [int(text.partition("\n")[0]) for text in printed]
    assert codes == [0] * len(COMMANDS), f"{dict(zip(COMMANDS, codes, strict=True))}\n{done.stderr[-2000:]}"
    return dict(zip(COMMANDS, (text.partition("\n")[2] for text in printed), strict=True))


# Each command in a folder of runs of its own, and what it printed after a mark and its exit code.
WALK = """
import contextlib, io, os, shlex, sys
from archehr.cli import main
for number, line in enumerate(sys.argv[1:], 1):
    out, code = io.StringIO(), 0
    sys.argv = shlex.split(line)
    with contextlib.redirect_stdout(out):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    if os.path.isdir("runs"):
        os.rename("runs", f"runs-{number}")
    print(f"\\0{code}\\n{out.getvalue()}", end="")
"""


def test_the_page_shows_every_source() -> None:
    assert len(COMMANDS) >= 16


@pytest.mark.parametrize("model", [False, True])
def test_the_walk_from_the_users_folder(model: bool, tmp_path: Path) -> None:
    with StubServer() as server:
        printed = walk(tmp_path, **(exported("own-notes.md", server) if model else {}))
    for number, (line, out) in enumerate(printed.items(), 1):
        if " ask " in line:
            assert re.search(r" \[([\d:, ]+|no direct support)\]$" if model else r"^\[[\d:]+\] ", out, re.M), line
        else:
            (folder,) = (tmp_path / f"runs-{number}").iterdir()
            assert ("my-model" in folder.name) == model
            said = (folder / "predictions.csv").read_text()
            assert "furosemide" in said or "--note-type" in line or model, line
            assert said.count("\n") > 1, line
    stages = {field for r in server.received for field in ("question", "scores", "links") if f"`{field}`" in r.ask}
    assert stages == ({"question", "scores", "links"} if model else set())


def test_from_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_sources(tmp_path)
    (code,) = blocks("own-notes.md", "python")
    scope = {"frame": pd.read_csv(tmp_path / "notes.csv")}
    exec(code, scope)
    assert [record.case_id for record in scope["result"].records] == ["a", "b"]
    assert "case_id" in capsys.readouterr().out and "furosemide" in scope["result"].records[0].answer_sentences[0]
