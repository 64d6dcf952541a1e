"""A Dataset knows its name, its hash and its key; the shipped samples are known from a user's folders of that name."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from archehr.data import plugins, readers
from archehr.data.case import DataError, Sentence
from archehr.data.dataset import Dataset, case_sha256, data_sha256, read_cases, read_dataset
from archehr.data.files import shipped_sample
from archehr.data.reading.reader import Reader, ReadOptions
from archehr.program.prompts.program_file import load_program
from tests.conftest import Ran

DEV = "3cb65a13c46bcfeac6c2ac35c97ee9a4bf199b4f25d36069f337169e2db8d39e"
CASE = '<annotations><case id="{}"><patient_narrative>Why?</patient_narrative></case></annotations>'


def write(path: Path, case_id: str = "1") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CASE.format(case_id))
    return path


def test_a_dataset_is_known_by_name_title_hash_and_key() -> None:
    data = read_dataset("sample/dev")
    assert (data.name, data.title, data.sha256) == ("sample/dev", "sample-dev", DEV)
    assert data.key == shipped_sample("dev") / "archehr-qa_key.json"
    assert case_sha256(data.cases)[:2] == ["772b10f12ed9", "0f79322f7c0f"]


def test_chosen_cases_keep_the_hash_of_what_they_were_chosen_from() -> None:
    data = read_dataset("sample/dev").only("3,1-2").only("2")
    assert [c.id for c in data.cases] == ["2"] and data.sha256 == DEV
    assert Dataset.of(data) is data
    assert Dataset.of(read_cases("sample/dev")).sha256 == DEV


@pytest.mark.parametrize(
    ("path", "title"),
    [("x/archehr-qa.xml", "x"), ("x/", "x"), ("v1.5/dev.xml", "dev"), ("v1.5", "v1.5")],
)
def test_the_title_is_what_folders_are_named_by(tmp_path: Path, path: str, title: str) -> None:
    write(tmp_path / path if path.endswith(".xml") else tmp_path / path / "some.xml")
    assert read_dataset(tmp_path / path).title == title


def test_an_own_folder_called_as_a_sample_is_read_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "sample/dev/archehr-qa.xml", case_id="mine")
    monkeypatch.chdir(tmp_path)
    data = read_dataset("sample/dev")
    assert [c.id for c in data.cases] == ["mine"]
    (note,) = data.notes
    assert note.startswith("sample/dev: read from your own folder") and "shipped with archehr" in note
    assert (data.name, data.title) == ("./sample/dev", "dev"), "never taken for the shipped one"
    assert load_program("extractive-dev").provenance.data_sha256 == DEV, "what it is fitted on stays the shipped one"


def test_the_shipped_folder_named_from_beside_it_is_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shipped_sample("dev").parents[1])
    data = read_dataset("sample/dev")
    assert data.name == "sample/dev" and not any("your own" in note for note in data.notes)


def test_own_folders_called_as_the_samples_change_no_warning(command: Callable[..., Ran], tmp_path: Path) -> None:
    """IN SAMPLE is told of the shipped dev wherever it lies, and an empty folder of that name ends no other run."""
    shutil.copytree(shipped_sample("dev"), tmp_path / "copy")
    (tmp_path / "sample/dev").mkdir(parents=True)
    ran = command("run", "copy", "--out", "r")
    assert ran.code == 0 and "IN SAMPLE" in ran.out
    empty = command("run", "sample/dev", "--out", "s")
    assert empty.code == 2 and "hides the shipped sample" in empty.err and "Traceback" not in empty.err
    assert command("run", "sample/test", "--cases", "101", "--out", "t").code == 0


def test_where_a_sentence_stands_does_not_change_the_hash() -> None:
    @dataclass(frozen=True, slots=True)
    class Placed(Sentence):
        where: int = 0

    case = read_cases("sample/dev")[0]
    placed = replace(
        case, sentences=tuple(Placed(s.id, s.text, s.paragraph_id, i) for i, s in enumerate(case.sentences))
    )
    assert data_sha256([placed]) == data_sha256([case])
    assert data_sha256([replace(case, sentences=case.sentences[1:])]) != data_sha256([case])


LOUD = """
from archehr.data.case import Case
from archehr.data.reading.reader import Reader

def cases(reading):
    for number, line in enumerate(reading.path.read_text().splitlines(), 1):
        yield Case(id=str(number), narrative=line.rstrip("!"))

READER = Reader("loud", "a .loud file, a message a line", lambda source: source.path.suffix == ".loud", cases)
"""


@pytest.fixture
def loud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The reader LOUD as another installed package would bring it."""
    (tmp_path / "loud_reader.py").write_text(LOUD)
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("loud", "loud_reader:READER", readers.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point] if group == readers.GROUP else [])
    readers.added_readers.cache_clear()
    yield
    readers.added_readers.cache_clear()


@pytest.mark.usefixtures("loud")
def test_a_reader_of_another_package_is_a_reader_like_ours(tmp_path: Path) -> None:
    assert len(LOUD.strip().splitlines()) <= 20
    path = tmp_path / "messages.loud"
    path.write_text("Why?!\nWhen?!\n")
    key = tmp_path / "key.json"
    key.write_text('[{"case_id": "2", "clinician_answer": "Soon."}]')
    data = read_dataset(path, key)
    assert [c.narrative for c in data.cases] == ["Why?", "When?"] and data.title == "messages"
    assert data.cases[1].gold is not None and data.cases[1].gold.answer == "Soon."
    assert read_dataset(path, options=ReadOptions(format="loud")).sha256 == data.sha256
    (tmp_path / "what").write_bytes(b"\x00\x01")
    with pytest.raises(DataError, match=r"a \.loud file, a message a line"):
        read_cases(tmp_path / "what")
    with pytest.raises(DataError, match=r"there are archehr, .*loud"):
        read_dataset(path, options=ReadOptions(format="soft"))


@pytest.mark.parametrize("target", ["no_such_module:READER", "json:dumps"])
def test_a_broken_reader_of_another_package_is_named(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda group: [EntryPoint("bad", target, group)])
    monkeypatch.setattr(readers, "added_readers", readers.added_readers.__wrapped__)
    with pytest.raises(DataError, match=target):
        readers.all_readers()
    assert read_cases("sample/dev"), "what ours read needs none of others"


def test_names_of_readers_are_their_own() -> None:
    names = [r.name for r in readers.READERS]
    assert len(set(names)) == len(names) and all(isinstance(r, Reader) for r in readers.READERS)
