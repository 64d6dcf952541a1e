"""Every variant of the official files that is about, and one clear line for every bad one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archehr.data.case import Case, DataError, Relevance
from archehr.data.dataset import parse_case_ids, read_cases, select_cases
from archehr.data.key import parse_citations, read_key

SECRET = "She has gout and does not want it known."
NOTE = (
    '<note_excerpt_sentences><sentence id="1">One.</sentence><sentence id="2">Two.</sentence></note_excerpt_sentences>'
)


def case_xml(body: str = NOTE, case_id: str = "1", narrative: str = "Why?") -> str:
    return f'<case id="{case_id}"><patient_narrative>{narrative}</patient_narrative>{body}</case>'


def write(folder: Path, *cases: str, key: object = None, encoding: str = "utf-8", head: str = "") -> Path:
    path = folder / "archehr-qa.xml"
    path.write_bytes(f"{head}<annotations>{''.join(cases)}</annotations>".encode(encoding))
    if key is not None:
        (folder / "archehr-qa_key.json").write_text(json.dumps(key), encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "essential", "links"), [("sample/dev", 123, 173), ("sample/test", 133, 185)])
def test_sample_sets_hold_what_their_readme_counts(name: str, essential: int, links: int) -> None:
    cases = read_cases(name)
    assert len(cases) == 20
    assert sum(len(c.gold.essential) for c in cases) == essential
    assert sum(len(c.gold.links) for c in cases) == links
    assert all(c.answer_sentences and c.clinician_question and c.question_phrases for c in cases)


def test_a_narrative_alone_is_a_case(tmp_path: Path) -> None:
    (case,) = read_cases(write(tmp_path, case_xml(body="")))
    assert (case.narrative, case.sentences, case.clinician_question, case.gold) == ("Why?", (), None, None)


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [("utf-8", "utf-8"), ("utf-8-sig", "utf-8"), ("utf-16", "utf-16"), ("utf-16", "utf-8"), ("utf-16", "")],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_encodings_and_line_ends_change_nothing(tmp_path: Path, encoding: str, declared: str, newline: str) -> None:
    body = NOTE.replace("One.", f"{newline}\N{NO-BREAK SPACE}5\N{NO-BREAK SPACE}mg, œdème β.{newline}    ")
    head = f'<?xml version="1.0" encoding="{declared}"?>{newline}' if declared else ""
    (case,) = read_cases(write(tmp_path, case_xml(body), encoding=encoding, head=head))
    assert case.sentences[0].text == "\N{NO-BREAK SPACE}5\N{NO-BREAK SPACE}mg, œdème β."


def test_ids_may_start_at_zero_and_are_strings(tmp_path: Path) -> None:
    body = NOTE.replace('"1"', '"0"').replace('"2"', '"1"')
    (case,) = read_cases(write(tmp_path, case_xml(body)))
    assert [s.id for s in case.sentences] == ["0", "1"]


@pytest.mark.parametrize(
    ("value", "ids"),
    [
        (["1", "2"], ("1", "2")),
        ("2,5", ("2", "5")),
        ("12, 5", ("12", "5")),
        ("19-21", ("19", "20", "21")),
        ("1, 3 - 5", ("1", "3", "4", "5")),
        ("[1, 4]", ("1", "4")),
        (["1-2", 4, "4"], ("1", "2", "4")),
        ("", ()),
        ([], ()),
        (7, ("7",)),
        (None, None),
    ],
)
def test_citations_in_every_shipped_form(value: object, ids: tuple[str, ...] | None) -> None:
    assert parse_citations(value) == ids


@pytest.mark.parametrize("value", [1.5, True, {"1": 2}, [["1"]], [None], "9-3", "1-999999"])
def test_citations_that_nobody_can_mean_are_refused(value: object) -> None:
    with pytest.raises(ValueError):
        parse_citations(value)


@given(st.lists(st.integers(0, 500), unique=True))
def test_citations_survive_every_way_of_writing_them(ids: list[int]) -> None:
    wanted = tuple(str(i) for i in ids)
    assert parse_citations(list(wanted)) == wanted
    assert parse_citations(ids) == wanted
    assert parse_citations(", ".join(wanted)) == wanted
    assert parse_citations("[" + ",".join(wanted) + "]") == wanted


@given(st.integers(0, 300), st.integers(0, 50))
def test_a_range_is_its_members(first: int, more: int) -> None:
    assert parse_citations(f"{first}-{first + more}") == tuple(str(i) for i in range(first, first + more + 1))


@given(st.one_of(st.text(), st.lists(st.text())))
def test_any_text_is_read_or_refused(value: object) -> None:
    try:
        ids = parse_citations(value)
    except ValueError:
        return
    assert ids is not None and len(set(ids)) == len(ids)


def test_gold_and_given_answer_sentences_come_from_the_key(tmp_path: Path) -> None:
    key = [
        {
            "case_id": "1",
            "answers": [
                {"sentence_id": "1", "relevance": "essential"},
                {"sentence_id": "2", "relevance": "not-relevant"},
            ],
            "clinician_answer": "It is one. [1-2]",
            "clinician_answer_sentences": [
                {"id": "1", "text": "It is one.", "citations": "1-2"},
                {"id": "2", "text": "And no more.", "citations": ""},
                {"id": "3", "text": "Not labelled."},
            ],
        }
    ]
    notes: list[str] = []
    (case,) = read_cases(write(tmp_path, case_xml(), key=key), notes=notes)
    assert case.gold is not None
    assert case.gold.relevance == {"1": Relevance.ESSENTIAL, "2": Relevance.NOT_RELEVANT}
    assert case.gold.answer == "It is one."
    assert [s.citations for s in case.gold.answer_sentences] == [("1", "2"), (), None]
    assert [s.text for s in case.answer_sentences] == ["It is one.", "And no more.", "Not labelled."]
    assert case.gold.links == {("1", "1"), ("1", "2")}
    assert len(notes) == 1 and "citations" in notes[0]


def test_answer_sentences_of_the_xml_win_over_the_keys(tmp_path: Path) -> None:
    body = NOTE + '<answer_sentences><sentence id="a">Given.</sentence></answer_sentences>'
    key = [{"case_id": "1", "clinician_answer_sentences": [{"id": "a", "text": "Other."}]}]
    (case,) = read_cases(write(tmp_path, case_xml(body), key=key))
    assert [(s.id, s.text) for s in case.answer_sentences] == [("a", "Given.")]


def test_a_key_of_another_name_beside_the_xml_is_found(tmp_path: Path) -> None:
    path = write(tmp_path, case_xml()).rename(tmp_path / "mine.xml")
    (tmp_path / "mine_key.json").write_text(json.dumps([{"case_id": "1", "clinician_answer_without_citations": "A."}]))
    (case,) = read_cases(path)
    assert case.gold is not None and case.gold.answer == "A."


def test_the_official_key_belongs_to_the_only_xml_of_its_folder(tmp_path: Path) -> None:
    path = write(tmp_path, case_xml(), key=[{"case_id": "1", "clinician_answer": "A."}])
    renamed = path.rename(tmp_path / "mine.xml")
    assert read_cases(tmp_path)[0].gold is not None
    write(tmp_path, case_xml())
    assert read_cases(renamed)[0].gold is None


BAD_XML = {
    "not XML": ("hello", "not XML"),
    "truncated": (f"<annotations>{case_xml()}"[:-9], "truncated"),
    "empty file": ("", "empty"),
    "no case": ("<annotations></annotations>", "no <case>"),
    "no id": (f"<annotations>{case_xml().replace(' id=', ' nr=', 1)}</annotations>", "case number 1 has no id"),
    "case twice": (f"<annotations>{case_xml()}{case_xml()}</annotations>", "case 1 stands twice"),
    "no narrative": (f"<annotations>{case_xml(narrative=' ')}</annotations>", "case 1: <patient_narrative>"),
    "sentence twice": (f"<annotations>{case_xml(NOTE.replace('2', '1'))}</annotations>", "sentence id 1 stands twice"),
    "sentence id empty": (f"<annotations>{case_xml(NOTE.replace('2', ' '))}</annotations>", "number 2 has no id"),
    "sentence empty": (f"<annotations>{case_xml(NOTE.replace('Two.', ''))}</annotations>", "sentence 2 is empty"),
    "bare ampersand": (f"<annotations>{case_xml(narrative='a & b')}</annotations>", "correct it there"),
    "line break in an id": (
        f"<annotations>{case_xml(case_id='1&#10;2') * 2}</annotations>",
        "case (a text of 3 characters) stands twice",
    ),
    "a sentence for an id": (
        f"<annotations>{case_xml(NOTE.replace('1', SECRET).replace('2', SECRET))}</annotations>",
        "sentence id (a text of",
    ),
    "entity bomb": (
        '<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><annotations>&b;</annotations>',
        "refused",
    ),
    "external entity": (
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><annotations>&x;</annotations>',
        "refused",
    ),
}


@pytest.mark.parametrize("kind", BAD_XML)
def test_bad_xml_gets_one_line_that_names_file_and_fault(tmp_path: Path, kind: str) -> None:
    content, told = BAD_XML[kind]
    path = tmp_path / "archehr-qa.xml"
    path.write_text(content)
    with pytest.raises(DataError) as error:
        read_cases(path)
    assert told in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value) and SECRET not in str(error.value)


BAD_KEYS = {
    "unknown case": ([{"case_id": "9"}], "case 9 is in the key but not in"),
    "case twice": ([{"case_id": "1"}, {"case_id": "1"}], "case 1 stands twice"),
    "no case_id": ([{"answers": []}], "entry 1 has no case_id"),
    "null case_id": ([{"case_id": None}], "entry 1 has no case_id"),
    "case_id a list": ([{"case_id": ["1"]}], "entry 1 has no case_id"),
    "answer a number": ([{"case_id": "1", "clinician_answer": 5}], "case 1: clinician_answer"),
    "answer sentences false": ([{"case_id": "1", "clinician_answer_sentences": False}], "must be an array"),
    "half a surrogate pair": ([{"case_id": "1", "clinician_answer": "\ud83d"}], "not UTF-8"),
    "not a list": ({"case_id": "1"}, "JSON array"),
    "unknown id": (
        [{"case_id": "1", "answers": [{"sentence_id": "9", "relevance": "essential"}]}],
        "case 1: answers label sentence 9",
    ),
    "label twice": (
        [{"case_id": "1", "answers": [{"sentence_id": "1", "relevance": "essential"}] * 2}],
        "sentence 1 is labelled twice",
    ),
    "unknown label": (
        [{"case_id": "1", "answers": [{"sentence_id": "1", "relevance": "Essential"}]}],
        "sentence 1 has relevance 'Essential'",
    ),
    "unknown citation": (
        [{"case_id": "1", "clinician_answer_sentences": [{"id": "1", "text": "x", "citations": "1,7"}]}],
        "answer sentence 1 cites 7",
    ),
    "unknown answer sentence": (
        [{"case_id": "1", "clinician_answer_sentences": [{"id": "b", "text": "x"}]}],
        "answer sentence b is not among",
    ),
    "unreadable citation": (
        [{"case_id": "1", "clinician_answer_sentences": [{"id": "1", "text": "x", "citations": {"a": 1}}]}],
        "answer sentence 1",
    ),
}


@pytest.mark.parametrize("kind", BAD_KEYS)
def test_a_bad_key_gets_one_line_that_names_file_case_and_fault(tmp_path: Path, kind: str) -> None:
    key, told = BAD_KEYS[kind]
    given = '<answer_sentences><sentence id="1">x</sentence></answer_sentences>'
    with pytest.raises(DataError) as error:
        read_cases(write(tmp_path, case_xml(NOTE + given), key=key))
    assert told in str(error.value)
    assert "archehr-qa_key.json" in str(error.value)
    assert "\n" not in str(error.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "1", "9", "1,2", SECRET, "a\nb"]),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(["id", "case_id"]), inside),
    max_leaves=4,
)


@given(st.data())
def test_anything_anywhere_in_a_key_is_read_or_gets_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    entry = {
        "case_id": "1",
        "answers": [{"sentence_id": "1", "relevance": "essential"}, {"sentence_id": "2", "relevance": "not-relevant"}],
        "clinician_answer": "One. [1]",
        "clinician_answer_sentences": [{"id": "1", "text": "One.", "citations": ["1"]}],
    }
    places = [(entry, name) for name in entry]
    places += [
        (item, name) for name in ("answers", "clinician_answer_sentences") for item in entry[name] for name in item
    ]
    place, name = data.draw(st.sampled_from(places))
    place[name] = data.draw(JSON)
    path = write(tmp_path_factory.mktemp("key"), case_xml(), key=[entry])
    try:
        read_cases(path)
    except DataError as error:
        assert "archehr-qa_key.json" in str(error)
        assert len(str(error).splitlines()) == 1 and SECRET not in str(error)


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe\x00", b"", b"[" * 100_000, b"[" + b"9" * 5000 + b"]"])
def test_a_key_that_is_no_json_gets_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"key\.json"):
        read_key(path)


def test_an_xml_named_as_the_key_is_told_apart(tmp_path: Path) -> None:
    path = write(tmp_path, case_xml())
    with pytest.raises(DataError, match="XML where JSON is due"):
        read_cases(path, key=path)


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_raise_anything_else(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "archehr-qa.xml"
    path.write_bytes(raw)
    with pytest.raises(DataError):
        read_cases(path)


def test_missing_paths_and_ambiguous_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_cases(tmp_path / "nothing")
    with pytest.raises(DataError, match="no such file"):
        read_cases("sample/prod")
    with pytest.raises(DataError, match="holds no"):
        read_cases(tmp_path)


def test_case_lists() -> None:
    assert parse_case_ids("1,4-6, 9") == ["1", "4", "5", "6", "9"]
    cases = read_cases("sample/dev")
    assert [c.id for c in select_cases(cases, "3,1-2")] == ["1", "2", "3"]
    with pytest.raises(DataError, match="no case 99"):
        select_cases(cases, "1,99")
    with pytest.raises(DataError, match="backwards"):
        parse_case_ids("3-1")
    with pytest.raises(DataError, match="longer than any data set"):
        parse_case_ids("1-999999999")
    with pytest.raises(DataError, match="names no case"):
        parse_case_ids(",")
    odd = [Case(i) for i in ("12-3", "a,b", "3", "4", *map(str, range(100, 999)))]
    assert [c.id for c in select_cases(odd, "12-3,3-4")] == ["12-3", "3", "4"], "an id of the data is no range"
    assert [c.id for c in select_cases(odd, {"a,b", "12-3"})] == ["12-3", "a,b"]
    with pytest.raises(DataError) as told:
        select_cases(odd, [f"none-{n}" for n in range(5000)])
    assert len(str(told.value)) < 400
