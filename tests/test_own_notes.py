"""Every command of docs/own-notes.md answers, on a small file of the kind it names."""

from __future__ import annotations

import gzip
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tests import sources
from tests.conftest import Ran
from tests.sources import NEW, OLD, WORDS

PAGE = (Path(__file__).parents[1] / "docs/own-notes.md").read_text()
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S) for line in block.splitlines()]


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


def test_the_page_shows_every_source() -> None:
    assert len(COMMANDS) >= 16 and all(line.startswith("archehr ") for line in COMMANDS)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page(line: str, command: Callable[..., Ran], tmp_path: Path) -> None:
    make_sources(tmp_path)
    ran = command(*shlex.split(line)[1:])
    assert ran.code == 0, ran
    if " ask " in line:
        assert re.search(r"^\[[\d:]+\] ", ran.out, re.M)
    else:
        (folder,) = Path("runs").iterdir()
        assert "furosemide" in (folder / "predictions.csv").read_text() or "--note-type" in line
