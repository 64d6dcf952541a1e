"""How stage 1 without an LM puts its questions: from a template, in the writer's own words, or in the third person.
`python -m tests.benchmarks.questions` prints the shares for the messages of the tests, of which it also says how many
questions are the right one, and for the sample; `--messages FILE` reads an XML of the shared task instead."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence

from archehr.data.dataset import read_cases
from archehr.program.extractive.reformulate import reformulate
from tests.program.question.messages import MESSAGES

TEMPLATES = ("What treatment is advised for", "What is advised", "What explains", "What information is there about")


def kind(question: str) -> str:
    """Which of the three ways a question was put."""
    if question.startswith(TEMPLATES):
        return "template"
    named = "the patient" in question.lower() or "the family" in question.lower()
    return "third person" if named else "writer's own words"


def report(name: str, messages: Sequence[str]) -> None:
    began = time.perf_counter()
    questions = [reformulate(message) for message in messages]
    each = 1000 * (time.perf_counter() - began) / len(messages)
    counts = Counter(map(kind, questions))
    full = sum(len(q.split()) == 15 for q in questions)
    print(f"{name}: {len(messages)} messages, {each:.1f} ms each")
    for way in ("third person", "writer's own words", "template"):
        print(f"  {way:20}{counts[way]:5}  {100 * counts[way] / len(messages):5.1f} %")
    print(f"  {'of 15 words':20}{full:5}  {100 * full / len(messages):5.1f} %")


def growth(words: int) -> float:
    """Seconds for a message of one sentence without a mark."""
    message = ("I have pain and if it goes on will I need what my doctor said he can give me " * words)[: 6 * words]
    began = time.perf_counter()
    reformulate(message)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", help="an XML file of the shared task")
    file = parser.parse_args().messages
    if file:
        report(file, [case.narrative for case in read_cases(file)])
        return
    report("tests", [sent.message for sent in MESSAGES])
    right = sum(reformulate(sent.message) == sent.question for sent in MESSAGES)
    print(f"  {'as expected':20}{right:5}  {100 * right / len(MESSAGES):5.1f} %")
    for data in ("sample/dev", "sample/test"):
        report(data, [case.narrative for case in read_cases(data)])
    growth(100)
    print(f"10,000 words to 1,000 in one sentence: {growth(10_000) / growth(1_000):.1f} times the seconds")


if __name__ == "__main__":
    main()
