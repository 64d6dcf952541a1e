"""Lengths: words as the official scorers count them (15 for a question, 75 for an answer), and tokens by estimate."""

from __future__ import annotations

from collections.abc import Sequence

CHARS_PER_TOKEN = 4  # an estimate for English text


def count_words(text: str) -> int:
    """Words between any Unicode white space, as the official loader counts them."""
    return len(text.split())


def estimate_tokens(text: str) -> int:
    """Characters / CHARS_PER_TOKEN, rounded up; no tokenizer is asked."""
    return -(-len(text) // CHARS_PER_TOKEN)


def one_line(text: str) -> str:
    """`text` on one line with single spaces, without quotation marks around the whole.

    Half a surrogate pair, which JSON can escape but no file can hold, becomes a question mark.
    """
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    while len(line) >= 2 and line[0] == line[-1] and line[0] in "\"'`":
        line = line[1:-1].strip()
    return line


def cut_question(question: str, limit: int) -> str:
    """The seed's hard cut: the first `limit` words; a question mark that was cut off is put back."""
    if count_words(question) <= limit:
        return question
    cut = " ".join(question.split()[:limit]).rstrip(",;:-")
    return f"{cut}?" if question.endswith("?") else cut


def fit_answer(sentences: Sequence[str], limit: int, soft_share: float) -> list[str]:
    """At most `limit` words by the seed's soft cut.

    Whole sentences are kept while they fit. If those hold at least `soft_share` of the limit, that is the answer;
    else the next sentence is cut hard at the limit and closed with a full stop.
    """
    kept: list[str] = []
    used = 0
    for sentence in sentences:
        size = count_words(sentence)
        if used + size > limit:
            if not kept or used < soft_share * limit:
                kept.append(_hard_cut(sentence, limit - used))
            break
        kept.append(sentence)
        used += size
    return kept


def _hard_cut(sentence: str, words: int) -> str:
    return " ".join(sentence.split()[:words]).rstrip(".,;:-") + "."
