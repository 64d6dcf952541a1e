"""Several DATA as one: a case that stands in two of them counts once, and two cases never share an id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from archehr.data.case import Case, shown_ids
from archehr.data.dataset import Dataset, case_sha256

BETWEEN = " + "


def data_label(name: str) -> str:
    """A name for DATA, or for several joined, that tells no path of this machine."""
    return BETWEEN.join(n.rstrip("/") if n.startswith("sample/") else Path(n).stem for n in name.split(BETWEEN))


def join(parts: Sequence[Dataset], tell: Callable[[str], None] = lambda line: None) -> Dataset:
    """The cases of all parts as one Dataset.

    Of a case that stands in several (the same message and note: an export of reviewed cases beside the data they are
    from) the labels of the last count. Ids that different cases share become NAME:ID in every part that has them.
    Both are told.
    """
    if len(parts) == 1:
        return parts[0]
    labels = _labels(parts)
    by_hash: dict[str, tuple[str, Case]] = {}
    for label, part in zip(labels, parts, strict=True):
        hashes = case_sha256(part.cases)
        twice: dict[str, list[str]] = {}
        for sha, case in zip(hashes, part.cases, strict=True):
            if sha in by_hash:
                twice.setdefault(by_hash[sha][0], []).append(case.id)
            by_hash[sha] = (label, case)
        for earlier, ids in twice.items():
            tell(_twice(ids, earlier, label, part))
    shared = {i for i, n in Counter(case.id for _, case in by_hash.values()).items() if n > 1}
    if shared:
        tell(f"ids that different cases share are named by their data: {shown_ids(sorted(shared))} become NAME:ID")
    cases = tuple(replace(c, id=f"{label}:{c.id}") if c.id in shared else c for label, c in by_hash.values())
    return Dataset(cases, BETWEEN.join(labels), "-".join(part.title for part in parts))


def _labels(parts: Sequence[Dataset]) -> list[str]:
    """A name for each part; the same name again gets a number."""
    labels: list[str] = []
    for part in parts:
        label = data_label(part.name) or "data"
        again = sum(other == label or other.startswith(f"{label}-") for other in labels)
        labels.append(f"{label}-{again + 1}" if again else label)
    return labels


def _twice(ids: Sequence[str], earlier: str, label: str, part: Dataset) -> str:
    what = f"all {len(ids)} cases" if len(ids) == len(part.cases) else f"case {shown_ids(ids)}"
    where = "twice" if earlier == label else f"as {earlier} does"
    return f"{label} holds {what} {where}: each counts once, as it was labelled last, in {label}"
