"""How many planted false statements verification catches, and how many true sentences it loses.

Run `python -m tests.benchmarks.verify`. One false statement is planted in the reference answer of every sample case
that has room for its kind, beside the gold citations. The twin's cuts and the alignment model are of sample/dev, so
only its figures on sample/test are out of sample.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import dspy
from dspy import lm15

from archehr.data.case import AnswerSentence, Case
from archehr.data.dataset import read_cases
from archehr.program.extractive.verify import ExtractiveVerify
from archehr.program.pipeline import GroundedQA
from archehr.program.settings import PipelineSettings
from archehr.program.stages.verify.verify import check_facts
from archehr.program.types import Link
from tests.fake_lm import fake_lm
from tests.planted import PLANTS, Planted, every_number, planted, true_sentences
from tests.scripted_stages import gold_lm, stage_of


def by_code(p: Planted) -> bool:
    """Whether the check of numbers, dates and names alone refuses the sentence."""
    link = Link(answer_id="1", evidence_ids=p.cited)
    return bool(check_facts([AnswerSentence("1", p.text)], [link], p.case.sentences))


def by_twin(p: Planted) -> bool:
    """Whether the check or the alignment model's chance refuses the sentence, which stands in its whole answer."""
    assert p.case.gold is not None
    answer = [AnswerSentence(a.id, p.text if a.id == p.sentence.id else a.text) for a in p.case.gold.answer_sentences]
    links = [Link(answer_id=a.id, evidence_ids=list(a.citations or ())) for a in p.case.gold.answer_sentences]
    made = ExtractiveVerify()(
        question=p.case.clinician_question, answer_sentences=answer, links=links, sentences=p.case.sentences
    )
    verdict = next(v for v in made.verdicts if v.answer_id == p.sentence.id)
    return verdict.verdict == "not supported" or by_code(p)


def shares(name: str, cases: Sequence[Case], refuses: Callable[[Planted], bool]) -> None:
    cells = []
    for kind in PLANTS:
        found = [refuses(p) for p in planted(kind, cases)]
        cells.append(f"{kind} {sum(found)}/{len(found)}")
    if refuses is by_code:
        found = [refuses(p) for p in every_number(cases)]
        cells.append(f"every number in six ways {sum(found)}/{len(found)}")
    lost = [refuses(p) for p in true_sentences(cases)]
    print(f"  {name:<12} caught: {', '.join(cells)}; true sentences flagged {sum(lost)}/{len(lost)}")


def auditor(p: Planted, catches: bool) -> dspy.LM:
    """An LM that writes the planted answer, and the true one when it is told; cites as the key does; and as a
    verifier refuses what was planted if it `catches` it."""
    gold = gold_lm([p.case])
    assert p.case.gold is not None
    true = [a.text for a in p.case.gold.answer_sentences]
    false = [p.text if a.id == p.sentence.id else a.text for a in p.case.gold.answer_sentences]

    def reply(request: lm15.Request) -> str:
        shown = str(request.system) + "".join(m.text or "" for m in request.messages)
        if stage_of(request) == "generate":
            return json.dumps({"answer_sentences": true if "not supported:" in shown else false})
        if stage_of(request) == "verify":
            last = request.messages[-1].text or ""
            verdicts = [
                {"answer_id": str(n), "verdict": "not supported" if catches and text == p.text else "supported"}
                for n, text in enumerate(false, 1)
                if text in last or true[n - 1] in last
            ]
            return json.dumps({"verdicts": [v | {"reason": "as planted"} for v in verdicts]})
        return str(gold.engine.backend.engine.complete(request).message.text)

    return fake_lm(reply)


def flow(cases: Sequence[Case], catches: bool) -> None:
    """What is shown in the end under `revise`, over all kinds."""
    shown = kept = total = 0
    plants = [p for kind in PLANTS for p in planted(kind, cases)]
    for p in plants:
        with dspy.context(lm=auditor(p, catches)):
            made = GroundedQA(PipelineSettings(verify="revise"))(case=p.case, question="given")
        assert p.case.gold is not None
        others = [a.text for a in p.case.gold.answer_sentences if a.id != p.sentence.id]
        shown += p.text in made.answer_sentences
        kept += sum(text in made.answer_sentences for text in others)
        total += len(others)
    who = "a verifier that catches" if catches else "one that sees nothing, so code alone"
    print(f"  revise, {who}: planted shown {shown}/{len(plants)}, true sentences kept {kept}/{total}")


def main() -> None:
    for name in ("dev", "test"):
        cases = read_cases(f"sample/{name}")
        print(f"sample/{name}, {len(cases)} cases")
        shares("code alone", cases, by_code)
        shares("twin", cases, by_twin)
    cases = read_cases("sample/test")
    print("sample/test, scripted LM")
    flow(cases, catches=True)
    flow(cases, catches=False)


if __name__ == "__main__":
    main()
