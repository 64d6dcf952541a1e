"""How sentences look in a prompt, and how a long note is cut into windows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol, TypeVar


class HasIdAndText(Protocol):
    """A note or an answer sentence."""

    @property
    def id(self) -> str: ...
    @property
    def text(self) -> str: ...


S = TypeVar("S", bound=HasIdAndText)


def render(sentences: Sequence[HasIdAndText]) -> str:
    """One line a sentence: `[id] text`."""
    return "\n".join(f"[{s.id}] {' '.join(s.text.split())}" for s in sentences)


def windows(sentences: Sequence[S], max_chars: int, overlap: int) -> Iterator[list[S]]:
    """Consecutive runs of whole sentences of at most `max_chars` characters; neighbours share `overlap` sentences.

    A single longer sentence is a window by itself. Every sentence is in at least one window; time is linear.
    """
    start = 0
    while start < len(sentences):
        end, size = start, 0
        while end < len(sentences) and (end == start or size + len(sentences[end].text) + 8 <= max_chars):
            size += len(sentences[end].text) + 8  # 8: the id, its brackets and the line end
            end += 1
        yield list(sentences[start:end])
        if end == len(sentences):
            return
        start = max(end - overlap, start + 1)


def near(sentences: Sequence[S], ids: set[str], max_chars: int) -> list[S]:
    """The note as far as `max_chars` allows: all of it, else what stands next to the sentences named by `ids`."""
    if sum(len(s.text) + 8 for s in sentences) <= max_chars:
        return list(sentences)
    at = [i for i, s in enumerate(sentences) if s.id in ids]
    kept: set[int] = set()
    size = 0
    for distance in range(3):
        for i in at:
            for j in {i - distance, i + distance}:
                if 0 <= j < len(sentences) and j not in kept and size + len(sentences[j].text) + 8 <= max_chars:
                    kept.add(j)
                    size += len(sentences[j].text) + 8
    return [sentences[j] for j in sorted(kept)]


def of_ids(sentences: Sequence[S], ids: Collection[str]) -> list[S]:
    """The sentences named by `ids`, in note order."""
    wanted = set(ids)
    return [s for s in sentences if s.id in wanted]
