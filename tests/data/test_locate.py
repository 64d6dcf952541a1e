"""Sentences of an XML get the offsets at which the note holds them, or none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archehr.data.dataset import data_sha256, read_cases
from archehr.data.splitter import split_note
from archehr.data.splitter.locate import locate


@pytest.mark.parametrize("name", ["sample/dev", "sample/test"])
def test_every_sentence_of_the_samples_is_found(name: str) -> None:
    for case in read_cases(name):
        assert case.note is not None
        assert [case.note[s.start : s.end] for s in case.sentences] == [s.text for s in case.sentences]


@pytest.mark.parametrize(
    ("note", "texts", "spans"),
    [
        ("He fell. He fell.", ["He fell.", "He fell."], [(0, 8), (9, 17)]),
        ("He\nfell.  It hurt.", ["He fell.", "It hurt."], [(0, 8), (10, 18)]),
        # a gap: found where the text stands once, not guessed where it stands twice or has gone by
        ("A. (left out) B. C.", ["A.", "B.", "C."], [(0, 2), (14, 16), (17, 19)]),
        ("A. (left out) B. B.", ["A.", "B."], [(0, 2), None]),
        ("B. A.", ["A.", "B."], [(3, 5), None]),
        ("A. B. C.", ["A.", "X.", "B.", "C."], [(0, 2), None, (3, 5), (6, 8)]),
        ("He fell.", ["He fell. Twice."], [None]),
        ("Hefell.", ["He fell."], [None]),
        ("", ["A."], [None]),
    ],
)
def test_offsets_are_certain_or_none(note: str, texts: list[str], spans: list[tuple[int, int] | None]) -> None:
    assert locate(note, texts, [None] * len(texts)) == spans


def test_a_hint_is_taken_where_it_holds_the_text() -> None:
    note = "A. (left out) B. B."
    assert locate(note, ["A.", "B."], [None, (17, 19)]) == [(0, 2), (17, 19)]
    assert locate(note, ["A.", "B."], [None, (16, 19)]) == [(0, 2), (17, 19)]
    assert locate(note, ["A.", "B."], [None, (3, 5)]) == [(0, 2), None]
    assert locate(note, ["A.", "B."], [None, (99, 101)]) == [(0, 2), None]


@given(st.text(alphabet="ab. \n"), st.lists(st.text(alphabet="ab. ", min_size=1)), st.integers(0, 9))
def test_what_is_found_is_the_sentence_and_never_goes_back(note: str, texts: list[str], start: int) -> None:
    found = locate(note, texts, [(start, start + len(text)) for text in texts])
    at = 0
    for text, span in zip(texts, found, strict=True):
        if span is not None:
            assert at <= span[0] <= span[1] and note[span[0] : span[1]].split() == text.split()
            at = span[1]


def _xml(folder: Path, inside: str) -> Path:
    path = folder / "notes.xml"
    path.write_text(
        f'<annotations><case id="1"><patient_narrative>Why?</patient_narrative>{inside}</case></annotations>'
    )
    return path


def test_a_case_without_sentences_is_split_as_ask_does(tmp_path: Path) -> None:
    note = "Brief Hospital Course:\nHe fell over\n10 times. It hurt."
    path = _xml(tmp_path, f"<note_excerpt>\n{note}\n</note_excerpt>")
    notes: list[str] = []
    (case,) = read_cases(path, notes=notes)
    assert case.sentences == split_note(note) and len(case.sentences) == 3
    assert notes == [f"{path}: notes without sentences were split here, as archehr ask does"]


@pytest.mark.parametrize(
    "labels",
    [
        '"answers": [{"sentence_id": "1", "relevance": "essential"}]',
        '"clinician_answer_sentences": [{"id": "1", "text": "He fell.", "citations": ["1"]}]',
    ],
)
def test_a_note_whose_sentences_the_key_labels_is_left_alone(tmp_path: Path, labels: str) -> None:
    """The key's ids are those of other sentences than ours."""
    path = _xml(tmp_path, "<note_excerpt>He fell. It hurt.</note_excerpt>")
    (tmp_path / "notes_key.json").write_text(f'[{{"case_id": "1", {labels}}}]')
    notes: list[str] = []
    assert read_cases(path, notes=notes)[0].sentences == () and not notes


def test_sentences_that_the_note_does_not_hold_have_no_offsets(tmp_path: Path) -> None:
    path = _xml(
        tmp_path,
        "<note_excerpt>He fell. It hurt.</note_excerpt><note_excerpt_sentences>"
        '<sentence id="1" start_char_index="0" length="8">He fell.</sentence>'
        '<sentence id="2" start_char_index="9" length="x">It did not hurt.</sentence></note_excerpt_sentences>',
    )
    (case,) = read_cases(path)
    assert [(s.start, s.end) for s in case.sentences] == [(0, 8), (None, None)]


def test_where_a_sentence_stands_is_not_hashed_but_what_it_says_is() -> None:
    """Finished runs and program files of the time before offsets still know their data."""
    case = read_cases("sample/dev")[0]
    moved = replace(case, sentences=tuple(replace(s, start=None, end=None) for s in case.sentences))
    changed = replace(case, sentences=(replace(case.sentences[0], text="Another."), *case.sentences[1:]))
    assert data_sha256([moved]) == data_sha256([case]) != data_sha256([changed])
    assert data_sha256(read_cases("sample/test")) == "319702a9cd7346f737030b345063822161bcc131611f42fddf56f63cd3ab6416"
