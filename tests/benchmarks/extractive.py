"""How good the stages without an LM are on cases they were not fitted on, and what reading adds to structure alone.
`python -m tests.benchmarks.extractive` prints dev by leave-one-case-out and test, both fitted on sample/dev.

Answers are the note's own words. Before, they were compressed and abbreviations guessed at: the mean of the three parts
of ST3 was then 25.1 on dev and 24.8 on test."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from archehr.data.case import Case, Gold
from archehr.data.dataset import read_cases
from archehr.metrics.alignment import alignment_table, count_links
from archehr.metrics.evidence import case_counts, evidence_table
from archehr.metrics.intervals import bootstrap
from archehr.metrics.leaderboard import CaseTable
from archehr.metrics.scorers.text import bleu, rouge_l_sum, sari
from archehr.optimize.students.examples import Pairs, Sentences, pairs_by_key, sentences_by_key
from archehr.optimize.students.fit import fit_alignment, fit_evidence
from archehr.program.extractive import EXTRACTIVE_CUT
from archehr.program.extractive.fitted.features import STRUCTURE
from archehr.program.extractive.fitted.models import AlignmentModel, EvidenceModel
from archehr.program.extractive.generate import answer
from archehr.program.extractive.reformulate import reformulate
from archehr.program.settings import PRESETS

Question = Callable[[Case], str]


def own(case: Case) -> str:
    return reformulate(case.narrative, case.question_phrases)


def given(case: Case) -> str:
    return case.clinician_question or ""


def gold_of(case: Case) -> Gold:
    assert case.gold is not None
    return case.gold


def evidence(model: EvidenceModel, case: Case, question: Question) -> list[str]:
    chances = model.chances(question(case), case.narrative, [s.text for s in case.sentences])
    return [s.id for s, c in zip(case.sentences, chances, strict=True) if model.score(c) >= EXTRACTIVE_CUT]


def evidence_scores(models: Sequence[EvidenceModel], cases: Sequence[Case], question: Question) -> CaseTable:
    counts = [case_counts(evidence(m, c, question), gold_of(c)) for m, c in zip(models, cases, strict=True)]
    return evidence_table([c.id for c in cases], counts)


def link_scores(models: Sequence[AlignmentModel], cases: Sequence[Case], question: Question) -> CaseTable:
    counts = []
    for model, case in zip(models, cases, strict=True):
        answers = gold_of(case).answer_sentences
        rows = model.chances([a.text for a in answers], [s.text for s in case.sentences], question(case))
        links = [
            (a.id, s.id)
            for a, row in zip(answers, rows, strict=True)
            for s, chance in zip(case.sentences, row, strict=True)
            if chance >= model.cut
        ]
        counts.append(count_links(links, gold_of(case).links or frozenset()))
    return alignment_table([c.id for c in cases], counts)


def text_scores(models: Sequence[EvidenceModel], cases: Sequence[Case]) -> str:
    """Mean ROUGE-L of the questions; BLEU, ROUGE-Lsum and SARI of the answers, three of the six official components."""
    questions = sum(rouge_l_sum(own(c), given(c)) for c in cases) / len(cases)
    answers = []
    for model, case in zip(models, cases, strict=True):
        found = evidence(model, case, own)
        text = " ".join(
            answer(own(case), [s for s in case.sentences if s.id in found], PRESETS["default"].answer_words)[0]
        )
        reference = gold_of(case).answer or ""
        answers.append(
            (bleu(text, reference), rouge_l_sum(text, reference), sari(case.narrative, text, reference) / 100)
        )
    means = [100 * sum(column) / len(cases) for column in zip(*answers, strict=True)]
    asked = f"question ROUGE-L {100 * questions:.1f}"
    parts = f"BLEU {means[0]:.1f} ROUGE-Lsum {means[1]:.1f} SARI {means[2]:.1f}"
    return f"{asked}; ST3, nothing declined: {parts}, their mean {sum(means) / 3:.1f}"


def show(what: str, table: CaseTable, measure: str) -> None:
    interval = bootstrap(table)[measure]
    print(f"  {what:58}{interval.value:5.1f}  [{interval.low:.1f}, {interval.high:.1f}]")


@dataclass(frozen=True)
class Seen:
    """What the models see of each case, by its id: computed once, whatever is fitted."""

    sentences: dict[str, Sentences]
    pairs: dict[str, Pairs]

    @classmethod
    def of(cls, cases: Sequence[Case]) -> Self:
        return cls({e.case_id: e for e in sentences_by_key(cases)}, {e.case_id: e for e in pairs_by_key(cases)})


def report(name: str, cases: Sequence[Case], fitted_on: Sequence[Sequence[Case]], seen: Seen) -> None:
    """`fitted_on` holds, for each case, the cases that its models learn from."""
    fitted = each_fit(fit_evidence, fitted_on, seen.sentences)
    blind = each_fit(_fit_blind, fitted_on, seen.sentences)
    linked = each_fit(fit_alignment, fitted_on, seen.pairs)
    print(name)
    show("ST2 strict micro F1, own question", evidence_scores(fitted, cases, own), "strict_micro_f1")
    show("ST2 strict micro F1, clinician's question", evidence_scores(fitted, cases, given), "strict_micro_f1")
    show("ST2 strict micro F1, structure only (nothing read)", evidence_scores(blind, cases, own), "strict_micro_f1")
    show("ST4 micro F1, given answer sentences, own question", link_scores(linked, cases, own), "micro_f1")
    print(f"  {text_scores(fitted, cases)}")


def each_fit(
    fit: Callable[[Sequence[Any]], Any], fitted_on: Sequence[Sequence[Case]], seen: Mapping[str, Any]
) -> list[Any]:
    """A model for each entry of `fitted_on`; the same cases are fitted once."""
    ids = [tuple(c.id for c in cases) for cases in fitted_on]
    fits = {names: fit([seen[name] for name in names]) for names in set(ids)}
    return [fits[names] for names in ids]


def _fit_blind(examples: Sequence[Sentences]) -> EvidenceModel:
    return fit_evidence(examples, names=STRUCTURE).model_copy(update={"concepts_weight": 0.0})


def main() -> None:
    began = time.perf_counter()
    dev, test = read_cases("sample/dev"), read_cases("sample/test")
    both = [*dev, *test]
    print("extractive program, synthetic cases, 95 % bootstrap intervals over cases")
    seen = Seen.of(both)
    report(f"sample/dev, {len(dev)} cases, each by models fitted on the others", dev, without_each(dev, len(dev)), seen)
    report(f"sample/test, {len(test)} cases, by models fitted on sample/dev", test, [dev] * len(test), seen)
    report(f"both, {len(both)} cases, each by models fitted on four fifths", both, without_each(both, 5), seen)
    print(f"{time.perf_counter() - began:.0f} s")


def without_each(cases: Sequence[Case], folds: int) -> list[list[Case]]:
    """For each case those that are not in its fold; case i is in fold i modulo `folds`."""
    others = [[c for i, c in enumerate(cases) if i % folds != k] for k in range(folds)]
    return [others[i % folds] for i in range(len(cases))]


if __name__ == "__main__":
    main()
