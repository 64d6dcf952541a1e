"""What a student learns from: each case as the models see it, with the labels of a key or of a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from archehr.data.case import AnswerSentence, Case, Gold, Relevance
from archehr.program.extractive.asked.match import Asked
from archehr.program.extractive.fitted.features import concept_vectors, sentence_features
from archehr.program.extractive.fitted.pairs import pair_features
from archehr.program.extractive.reformulate import reformulate
from archehr.program.run.records import CaseRecord
from archehr.program.types import AgreedScore

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float64]]

# Labellers disagree most about supplementary sentences: one counts half against being essential.
SUPPLEMENTARY_WEIGHT = 0.5


@dataclass(frozen=True)
class Sentences:
    """The note sentences of a case: (sentences, NAMES) `rows`, their `concepts`, what is `asked` of them, how likely
    each `is` essential (0..1) and what it `counts`."""

    case_id: str
    rows: Matrix
    concepts: Sequence[dict[str, float]]
    asked: Asked
    essential: Matrix
    counts: Matrix


@dataclass(frozen=True)
class Pairs:
    """The pairs of answer and note sentences of a case: (answers * notes, PAIR_NAMES) `rows`, and (answers, notes) how
    likely each `linked` is (0..1)."""

    case_id: str
    rows: Matrix
    linked: Matrix


def sentences_by_key(cases: Sequence[Case]) -> list[Sentences]:
    """Those of the cases whose key labels note sentences."""
    import numpy as np

    found = []
    for case in cases:
        if case.sentences and case.gold is not None and case.gold.relevance is not None:
            gold = case.gold
            essential = np.array([float(s.id in gold.essential) for s in case.sentences])
            halves = [SUPPLEMENTARY_WEIGHT if s.id in gold.supplementary else 1.0 for s in case.sentences]
            found.append(_sentences(case, essential, np.array(halves)))
    return found


def pairs_by_key(cases: Sequence[Case]) -> list[Pairs]:
    """Those of the cases whose key has citations."""
    found = []
    for case in cases:
        answers = [a for a in case.gold.answer_sentences if a.citations is not None] if case.gold else []
        if answers and case.sentences:
            found.append(_pairs(case, answers, {a.id: a.citations or () for a in answers}))
    return found


def labelled_by_run(cases: Sequence[Case], records: Mapping[str, CaseRecord]) -> list[Case]:
    """The cases with what a run said of them as their gold: its evidence, and the links of the clinician's answer
    sentences or of its own. Where a stage's twin answered for the LM nothing is taken: it would be taught its own
    mistakes."""
    found = []
    for case in cases:
        record = records.get(case.id)
        if record is None or record.declined:
            continue
        relevance = None
        if record.evidence and not _fell_back(record, "score"):
            chosen = set(record.evidence)
            relevance = {
                s.id: Relevance.ESSENTIAL if s.id in chosen else Relevance.NOT_RELEVANT for s in case.sentences
            }
        answers = () if _fell_back(record, "align") or _fell_back(record, "generate") else _linked(case, record)
        found.append(replace(case, gold=Gold(relevance=relevance, answer_sentences=answers)))
    return found


def sure_by_run(records: Mapping[str, CaseRecord]) -> dict[str, Matrix]:
    """case id -> how sure the vote on each note sentence was (0..1), of the cases that several replies voted on: the
    share that is for what was decided. As the label itself the share does worse than the decision alone
    (tests/benchmarks/distillation.py)."""
    import numpy as np

    sure = {}
    for case_id, record in records.items():
        chosen, scores = set(record.evidence or ()), record.scores or []
        agreed = [s for s in scores if isinstance(s, AgreedScore)]
        if agreed and len(agreed) == len(scores):
            sure[case_id] = np.array([s.confidence if s.id in chosen else 1 - s.confidence for s in agreed])
    return sure


def weighed(examples: Sequence[Sentences], sure: Mapping[str, Matrix]) -> list[Sentences]:
    """The examples, each label counting as much as it is sure, where that is known."""
    return [replace(e, counts=e.counts * sure[e.case_id]) if e.case_id in sure else e for e in examples]


def _linked(case: Case, record: CaseRecord) -> tuple[AnswerSentence, ...]:
    own = [AnswerSentence(str(i), text) for i, text in enumerate(record.answer_sentences or (), 1)]
    answers, links = (own, record.links) if record.given_links is None else (case.answer_sentences, record.given_links)
    cited = {link.answer_id: tuple(link.evidence_ids) for link in links or ()}
    return tuple(AnswerSentence(a.id, a.text, cited[a.id]) for a in answers if a.id in cited)


def _fell_back(record: CaseRecord, stage: str) -> bool:
    return any(n["stage"] == stage and n["kind"] == "lm_failed" for n in record.notices)


def _sentences(case: Case, essential: Matrix, counts: Matrix) -> Sentences:
    texts = [s.text for s in case.sentences]
    question = _question(case)
    rows = sentence_features(question, case.narrative, texts)
    asked = Asked.of(question, case.narrative, texts)
    return Sentences(case.id, rows, concept_vectors(texts), asked, essential, counts)


def _pairs(case: Case, answers: Sequence[AnswerSentence], cited: Mapping[str, Collection[str]]) -> Pairs:
    import numpy as np

    notes = [s.text for s in case.sentences]
    rows = pair_features([a.text for a in answers], notes, _question(case))
    linked = [[float(s.id in cited.get(a.id, ())) for s in case.sentences] for a in answers]
    return Pairs(case.id, rows, np.array(linked))


def _question(case: Case) -> str:
    """The program's own question, as in a run."""
    return reformulate(case.narrative, case.question_phrases)
