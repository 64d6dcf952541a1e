"""One message and one note, or one patient's notes, as a case: what `archehr ask` answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from archehr.data.case import Case, DataError, shown_id, shown_ids
from archehr.data.dataset import iter_cases
from archehr.data.files import located
from archehr.data.readers import is_source
from archehr.data.reading.building import Message, Note, case_of_notes
from archehr.data.reading.reader import ReadOptions
from archehr.data.reading.texts import read_text


def case_of(
    path: str | Path,
    message: str,
    question: str | None = None,
    *,
    case_id: str | None = None,
    options: ReadOptions | None = None,
    notes: list[str] | None = None,
) -> Case:
    """The case of one message and the notes in `path`: a text, HTML, RTF, PDF or DOCX file, or any source that
    `read_dataset` takes, of which `case_id` names the case where there are several.

    `message` is the patient's words or a file that holds them. What had to be done to read them (an encoding guessed)
    is appended to `notes`. Raises DataError.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "note.txt").write_text("She was given furosemide. She went home on day 3.")
        >>> case = case_of(folder / "note.txt", "Why was I given a water pill?")
        >>> [sentence.text for sentence in case.sentences]
        ['She was given furosemide.', 'She went home on day 3.']
    """
    path, notes = located(Path(path)), notes if notes is not None else []
    words = message_text(message, notes)
    options = replace(options or ReadOptions(), message=words)
    if options.format is None and not is_source(path):
        note = Note(path.stem, read_text(path, options.max_bytes, notes.append))
        return case_of_notes(Message(words, path.stem, question), [note])
    cases: dict[str, Case] = {}
    for case in iter_cases(path, options, notes=notes):
        if case_id in (None, case.id):
            cases[case.id] = case
    if not cases:
        raise DataError(f"{path}: holds {f'no case {shown_id(case_id)}' if case_id else 'no note that can be read'}")
    if len(cases) > 1:
        raise DataError(f"{path}: holds {len(cases)} cases; name one by --case (they are {shown_ids(cases)})")
    (case,) = cases.values()
    question = question or case.clinician_question
    return replace(
        case, narrative=words, clinician_question=question, question_phrases=(), answer_sentences=(), gold=None
    )


def message_text(message: str, notes: list[str]) -> str:
    """The patient's words, given as they are or as a file that holds them. Raises DataError."""
    words = (_file_text(Path(message), notes) if _is_file(message) else message).replace("\r\n", "\n").strip()
    if not words:
        raise DataError("the message is empty; give the patient's words or a file that holds them")
    if any("\ud800" <= c <= "\udfff" for c in words):  # what the shell's bytes become that are not UTF-8
        raise DataError("the message is not UTF-8 text; save it as UTF-8 in a file and name that")
    return words


def _is_file(message: str) -> bool:
    try:
        return Path(message).is_file()
    except (OSError, ValueError):  # too long for a path, or with a NUL in it: a message
        return False


def _file_text(path: Path, notes: list[str]) -> str:
    if not path.stat().st_size:
        raise DataError("the message is empty; give the patient's words or a file that holds them")
    return read_text(path, ReadOptions().max_bytes, notes.append)
