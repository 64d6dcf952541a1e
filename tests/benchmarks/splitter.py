"""How well raw notes are split: `python -m tests.benchmarks.splitter` prints the boundary F1 against the samples' own
sentences, plain and hard-wrapped, the share of sentences that wrapping leaves as they were, and the time."""

from __future__ import annotations

import textwrap
import time
from collections import Counter
from collections.abc import Sequence

from archehr.data.dataset import read_cases
from archehr.data.splitter import split_note
from tests.data.note_shapes import SHAPES

WIDTHS = (None, 60, 70, 80, 90, 100)


def wrap(note: str, width: int | None) -> str:
    """The note with every line broken where it gets longer than `width` columns."""
    if width is None:
        return note
    return "\n".join(
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in note.split("\n")
    )


def boundaries(sentences: Sequence[str]) -> set[int]:
    """Where sentences end, counted in characters that are not white space."""
    ends, at = set(), 0
    for sentence in sentences:
        at += len("".join(sentence.split()))
        ends.add(at)
    return ends


def boundary_f1(name: str, width: int | None) -> tuple[float, float, float]:
    """Precision, recall and F1, in percent, of the sentence ends of all notes of a sample."""
    agreed = found = expected = 0
    for case in read_cases(name):
        ours = boundaries([s.text for s in split_note(wrap(case.note or "", width))])
        theirs = boundaries([s.text for s in case.sentences])
        agreed, found, expected = agreed + len(ours & theirs), found + len(ours), expected + len(theirs)
    return 100 * agreed / found, 100 * agreed / expected, 200 * agreed / (found + expected)


def kept(notes: Sequence[str], width: int | None) -> float:
    """The share, in percent, of the sentences that wrapping leaves as they were."""
    same = found = 0
    for note in notes:
        plain, wrapped = (Counter(s.text for s in split_note(text)) for text in (note, wrap(note, width)))
        same, found = same + (plain & wrapped).total(), found + plain.total()
    return 100 * same / found


def seconds(sentences: int) -> float:
    """The best of five times to split a note of about so many sentences, wrapped at 80 columns."""
    pool = [s.text for case in read_cases("sample/test") for s in case.sentences]
    paragraphs = [" ".join(pool[(i + j) % len(pool)] for j in range(8)) for i in range(0, sentences, 8)]
    note = wrap("\n\n".join(paragraphs), 80)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        split_note(note)
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    samples = [case.note or "" for name in ("sample/dev", "sample/test") for case in read_cases(name)]
    shapes = [note for note, _ in SHAPES.values()]
    print("wrapped at   sample/dev P R F1    sample/test P R F1   sentences kept: samples  other shapes")
    for width in WIDTHS:
        scores = [boundary_f1(name, width) for name in ("sample/dev", "sample/test")]
        figures = "  ".join(f"{precision:7.1f} {recall:5.1f} {f1:5.1f}" for precision, recall, f1 in scores)
        print(f"{width or 'plain':>10}  {figures}  {kept(samples, width):26.2f} % {kept(shapes, width):11.2f} %")
    small, middle, large = seconds(1000), seconds(5000), seconds(10000)
    print(
        f"5,000 sentences {middle:.2f} s; 10,000 to 1,000 sentences: {large / small:.1f} times the time (10 is linear)"
    )
