"""NOTE_NLP rows of the OMOP common data model 5.4: the note sentences that answers cite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

from archehr.data.files import write_private
from archehr.data.writers.answers import Answered, Made, csv_lines, listed, place

_LONGEST = 250  # characters of lexical_variant and snippet in the model
COLUMNS = (
    "note_nlp_id note_id section_concept_id snippet offset lexical_variant note_nlp_concept_id "
    "note_nlp_source_concept_id nlp_system nlp_date nlp_datetime term_exists term_temporal term_modifiers"
).split()


def write_omop(folder: Path, answers: Iterable[Answered], origin: Made) -> Path:
    """Write note_nlp.csv, 0600. Raises DataError."""
    path = folder / "note_nlp.csv"
    write_private(path, csv_lines(COLUMNS, note_nlp(answers, origin)))
    return path


def note_nlp(answers: Iterable[Answered], origin: Made) -> Iterator[dict[str, Any]]:
    """A row for every cited sentence of every case. `offset` counts characters from the start of the note, and
    `lexical_variant` is cut at the 250 characters the model has for it; `term_modifiers` names the answer's sentences.
    """
    system = f"archehr-dspy {origin.version} {origin.program}" + (f" {origin.lm}" if origin.lm else "")
    when = origin.when.astimezone(UTC)
    number = 0
    for answered in answers:
        for sentence, document in answered.cited():
            at = place(sentence, document)
            if sentence.id.endswith(":0"):  # the heading that we put before a note is not in it
                continue
            number += 1
            by = [n for n, part in enumerate(answered.parts, 1) if sentence in part.cited]
            yield {
                "note_nlp_id": number,
                "note_id": document.id if document else answered.case.id,
                "section_concept_id": 0,
                "offset": at[0] if at else "",
                "lexical_variant": sentence.text[:_LONGEST],
                "note_nlp_concept_id": 0,
                "note_nlp_source_concept_id": 0,
                "nlp_system": system[:_LONGEST],
                "nlp_date": when.date().isoformat(),
                "nlp_datetime": when.strftime("%Y-%m-%d %H:%M:%S"),
                "term_modifiers": f"case={answered.case.id}; answer_sentence={listed(by)}",
            }
