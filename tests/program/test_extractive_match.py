"""What a short question finds in a team's own short note: the sentence that answers it, and hardly another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archehr.data.case import Case
from archehr.data.dataset import read_cases
from archehr.data.splitter import split_note
from archehr.program.extractive.asked.match import ALONE, STORY, Asked, how_alone, match
from archehr.program.extractive.fitted.at_work import at_work
from archehr.program.extractive.fitted.features import concept_vectors, sentence_features
from archehr.program.extractive.fitted.file import shipped
from archehr.program.extractive.why import what_weighed
from archehr.program.extractive_program import extractive_program

NOTES = {
    "progress": """S: Slept well, no chest pain. Legs less swollen.
O: T 98.4 BP 112/60 HR 84 96% RA. Wt 81.0 kg (admit 84.2). K 3.1, Cr 1.3.
A/P:
1. Heart failure.
Improving on IV furosemide. Change to oral torsemide tomorrow.
2. Hypokalemia.
From diuresis, repleted.
3. Gout.
Flare of the right great toe. Colchicine 0.6 mg daily; no NSAIDs given the kidneys.
4. Delirium.
He was hallucinating on hospital day 2. It cleared after lorazepam was stopped.
Dispo: home on Friday with a visiting nurse.
""",
    "medicines": """DISCHARGE MEDICATIONS:
1. Apixaban 5 mg PO BID
2. Metoprolol succinate 50 mg PO daily
3. Amiodarone 200 mg PO daily - NEW
4. Atorvastatin 40 mg PO qHS - reduced because of interaction with amiodarone
5. Furosemide 40 mg PO daily - INCREASED from 20 mg
STOPPED MEDICATIONS:
- Digoxin (level raised)
- Aspirin 81 mg (bleeding risk with apixaban)
""",
    "x-ray": """CT ABDOMEN AND PELVIS
Indication: flank pain
FINDINGS: Liver and spleen are normal. The pancreas is unremarkable. A 5 mm stone in the left distal ureter with mild
hydronephrosis. Simple cyst of the right kidney. No free fluid. The appendix is normal.
IMPRESSION:
1. Obstructing 5 mm stone in the left ureter.
2. No appendicitis.
""",
}


@pytest.mark.parametrize(
    ("note", "message", "right"),
    [
        ("progress", "why is my potassium low", "From diuresis, repleted."),
        ("progress", "When can he go home?", "home on Friday with a visiting nurse."),
        ("progress", "Can dad take Advil for his toe?", "anti-inflammatory drugs given the kidneys."),
        ("progress", "he was seeing things, is that gone?", "It cleared after lorazepam was stopped."),
        ("medicines", "why did they stop my aspirin", "Aspirin 81 mg (bleeding risk with apixaban)."),
        ("medicines", "What dose of Lasix do I take?", "Furosemide 40 mg PO daily"),
        ("medicines", "why was my cholesterol pill lowered", "Atorvastatin 40 mg PO at bedtime"),
        ("x-ray", "What is on my kidney?", "Simple cyst of the right kidney."),
        ("x-ray", "is my pancreas ok", "The pancreas is unremarkable."),
    ],
)
def test_a_short_question_gets_the_sentence_that_answers_it(note: str, message: str, right: str) -> None:
    made = extractive_program()(case=Case("1", message, note=NOTES[note], sentences=split_note(NOTES[note])))
    assert right.lower() in made.answer.lower()
    assert len(made.answer_sentences) <= 3


TEXTS = st.lists(
    st.one_of(st.text(), st.sampled_from(["# AKI:", "Cr 2.1 c/w ATN.", "Seen by Dr.", "It cleared."])), min_size=1
)


@settings(deadline=None, max_examples=50)
@given(TEXTS, st.text())
def test_any_text_is_matched_between_nothing_and_all(texts: list[str], question: str) -> None:
    found = match(question, texts)
    assert found.shape == (len(texts),) and found.min() >= 0 and found.max() in (0, 1)


def test_a_sentence_is_found_by_its_words_another_name_its_heading_and_what_it_goes_on_with() -> None:
    texts = ["# Stroke:", "Seen by neurology.", "# Delirium:", "He was confused.", "It cleared.", "# Gout: no flare."]
    found = match("Will the confusion clear", texts)
    assert found[3] > 0 and found[4] == 1 and not found[[0, 1, 2, 5]].any()
    assert not match("Why?", texts).any()


def test_torn_halves_have_the_same() -> None:
    found = match("Why is her kidney hurt", ["Seen by Dr.", "___, who blames the kidney injury on NSAIDs.", "Gout."])
    assert found.tolist() == [1, 1, 0]


def test_a_message_is_a_question_alone_or_a_story_or_something_between() -> None:
    assert [how_alone("why " * n) for n in (0, ALONE, (ALONE + STORY) // 2, STORY, 500)] == [1, 1, 0.5, 0, 0]


def test_of_a_story_the_match_counts_nothing() -> None:
    case = read_cases("sample/test")[0]
    texts = [s.text for s in case.sentences]
    asked = Asked.of("Why?", case.narrative, texts)
    assert asked.alone == 0 and not asked.match.any()
    model = shipped("extractive-dev").evidence
    judged = model.judge(sentence_features("Why?", case.narrative, texts), concept_vectors(texts), asked)
    assert np.array_equal(judged, model.chances("Why?", case.narrative, texts))


def test_a_reason_given_for_a_score_is_that_it_speaks_of_what_is_asked() -> None:
    texts = ["Heparin was held.", "Diet regular.", "Walked with a cane."]
    with at_work(shipped()):
        told = what_weighed("Why was heparin held?", "Why was heparin held?", texts, {0, 1})
    assert "it speaks of what is asked" in told[0] and "it speaks of what is asked" not in told[1]
