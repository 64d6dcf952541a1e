"""A note in another language is told once, and an English one in telegraphic style is not called foreign."""

from __future__ import annotations

from dataclasses import replace

import dspy
import pytest

from archehr.data.case import Case
from archehr.data.dataset import read_cases
from archehr.data.splitter import split_note
from archehr.program.extractive_program import extractive_program
from archehr.program.language import other_language
from archehr.program.pipeline import GroundedQA
from tests.data.note_shapes import SHAPES
from tests.fake_lm import asked, fake_lm
from tests.stub_server import answer_stage

FOREIGN = {
    "German": "Der Patient klagt seit ca. 3 Wochen über Husten und Fieber. Kein Auswurf.",
    "French": "Le patient est venu pour une douleur thoracique. Il a été traité avec de l'aspirine.",
    "Spanish": "Paciente de 65 años que acude por dolor torácico desde hace 3 días. Refiere fiebre. No toma nada.",
    "Italian": "Paziente con dolore toracico da 3 giorni. Non ha febbre, è stato trattato nella nostra clinica.",
    "Portuguese": "Doente de 65 anos, com dor torácica há 3 dias. Não apresenta febre. Foi tratado e teve alta.",
    "Dutch": "De patiënt werd opgenomen met pijn op de borst en koorts sinds drie dagen, geen hoest.",
    "Swedish": "Patienten har haft ont i bröstet och feber i tre dagar. Han är inte allergisk, det gick efter vila.",
    "Danish or Norwegian": "Pasienten har hatt vondt i brystet og feber i tre dager. Hun er ikke allergisk, det gikk.",
    "Polish": "Pacjent przyjęty z powodu bólu w klatce piersiowej oraz gorączki. Nie pali. Bez alergii, był operowany.",
    "not to be in Latin letters": "Пациент поступил с болью в груди и температурой. Курит.",
}

TELEGRAPHIC = [
    "67M w/ COPD, CAD s/p CABG, AF on warfarin p/w SOB x3d. CTAB, RRR, no m/r/g. Abd soft NT ND.",
    "DES to LAD, LIMA-LAD patent. EF 35 %. IM injection. PO BID. D/c PT/OT. Con't meds. Para 2. LA dilated.",
    "AST 212 ALT 188 LDH 690 Plt 94 Hct 35.8 Cr 0.8",
    "metoprolol 50 mg po bid\naspirin 81 mg po qd\nlasix 40 mg po qd\nsenna prn",
    "Dr. de la Cruz and Dr. van der Berg saw him in Los Angeles. Von Willebrand disease. Le Fort II fracture.",
    "PENICILLIN SULFA",
    "",
]


@pytest.mark.parametrize("language", FOREIGN)
def test_a_note_in_another_language(language: str) -> None:
    assert other_language(FOREIGN[language]) == language


@pytest.mark.parametrize("text", TELEGRAPHIC)
def test_an_english_note_however_short(text: str) -> None:
    assert other_language(text) is None


def test_no_few_sentences_of_an_english_note_look_foreign() -> None:
    notes = [case.note or "" for name in ("sample/dev", "sample/test") for case in read_cases(name)]
    notes += [note for shape, (note, _) in SHAPES.items() if shape != "abbreviations"]
    for note in notes:
        found = [s.text for s in split_note(note)]
        for i in range(len(found)):
            assert other_language(" ".join(found[i : i + 4])) is None


def told(case: Case, program: GroundedQA) -> list[tuple[str, str]]:
    return [(n.stage, n.detail) for n in program(case=case).notices if n.kind == "language"]


def test_the_program_without_an_lm_tells_it_once_and_goes_on() -> None:
    case = read_cases("sample/test")[0]
    german = replace(case, note=FOREIGN["German"], sentences=split_note(FOREIGN["German"]), answer_sentences=())
    assert told(case, extractive_program()) == []
    told_of_note = [("note", "the extractive stages read English only; this note looks German")]
    assert told(german, extractive_program()) == told_of_note
    assert extractive_program()(case=german).answer
    spanish = replace(case, narrative=FOREIGN["Spanish"], answer_sentences=())
    assert told(spanish, extractive_program()) == [
        ("message", "the extractive stages read English only; this message looks Spanish")
    ]


def test_a_program_with_an_lm_reads_what_its_lm_reads() -> None:
    case = Case("1", "Warum?", note=FOREIGN["German"], sentences=split_note(FOREIGN["German"]))
    with dspy.context(lm=fake_lm(lambda request: answer_stage(asked(request)))):
        assert told(case, GroundedQA()) == []
