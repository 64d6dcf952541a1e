"""The official scorers on raw submissions and keys, faults included, for comparing with published figures.

Follows soni-sarvesh/archehr-qa-2026 at 344b67e, evaluation/scoring_subtask_{1,2,3,4}.py: what it accepts is accepted,
what it refuses or crashes on is a DataError, and the numbers are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from archehr.data.case import DataError
from archehr.metrics.components import Resources, components
from archehr.metrics.keys import official_keys
from archehr.metrics.leaderboard import text_table
from archehr.metrics.predictions import WORD_LIMIT, check_cases, read_predictions
from archehr.metrics.scorers.text import ROUGE
from archehr.metrics.tables import Scored, Scorer


def official_subtask2(submission: Any, key: Any, case_ids_to_score: Collection[str] | None = None) -> dict[str, float]:
    """The official leaderboard (0-100; NaN macro scores for no cases) of an evidence submission.

    Both are raw JSON; `case_ids_to_score` is None or what `official_case_ids` gives. Raises DataError.
    """
    return official_score(2, submission, key=key, wanted=case_ids_to_score).table.leaderboard()


def official_subtask4(submission: Any, key: Any, case_ids_to_score: Collection[str] | None = None) -> dict[str, float]:
    """The official leaderboard (0-100) of an alignment submission; arguments as for `official_subtask2`."""
    return official_score(4, submission, key=key, wanted=case_ids_to_score).table.leaderboard()


def official_score(
    subtask: int,
    submission: Any,
    *,
    key: Any = None,
    xml: Element | None = None,
    wanted: Collection[str] | None = None,
    resources: Resources | None = None,
    notes: list[str] | None = None,
) -> Scored:
    """Scores a raw submission as the official script of `subtask` does.

    Subtask 1 needs `xml` (the root of archehr-qa.xml), 2 and 4 `key` (the parsed key), 3 both. Components whose
    model is not there are missing, where the official script would stop. Raises DataError.
    """
    predictions = list(read_predictions(submission, subtask, wanted=wanted, notes=notes))
    if subtask in WORD_LIMIT and (empty := [case_id for case_id, text in predictions if not text]):
        raise DataError(f"case {empty[0]}: the prediction is empty; the official script stops here")
    keys = official_keys(subtask, key, xml, wanted)
    check_cases([case_id for case_id, _ in predictions], keys)
    if notes is not None and subtask == 4 and any(cited == "," for k in keys.values() for _, cited in k.links):
        notes.append("citations kept as strings were read character by character, as the official script does")
    if subtask == 3 and (bare := [case_id for case_id in keys if keys[case_id].source is None]):
        raise DataError(f"case {bare[0]} is in the key but not in the XML; the official script stops here")
    scorer = Scorer(subtask, resources or Resources(), official_only=True)
    for case_id, prediction in predictions:
        scorer.add(case_id, prediction, keys[case_id])
    scored = scorer.scored()
    if scored.unscorable:
        where, why = next(iter(scored.unscorable.items()))
        raise DataError(f"{where}: {why}; the official script stops here, score without --as-official")
    return scored


def official_case_ids(args: Sequence[str] | None, subtask: int = 2) -> set[str] | None:
    """`--case_ids_to_score` as the official scripts read it; None means every case.

    "3-1" is an empty range, and nothing but empty ranges means every case. The script of subtask 1 does not know
    ranges. Raises DataError for an unreadable range.
    """
    if not args:
        return None
    ids: set[str] = set()
    for arg in args:
        if subtask == 1 or "-" not in arg or arg.startswith("-"):
            ids.add(arg)
            continue
        try:
            start, end = map(int, arg.split("-"))
        except ValueError:
            raise DataError(f"case range {arg}: write it like 1-3") from None
        ids.update(str(i) for i in range(start, end + 1))
    return ids or None


def official_leaderboard(scores: dict[str, Any], subtask: int) -> dict[str, float]:
    """`get_leaderboard` of subtask 1 or 3 over corpus scores (0-1; SARI 0-100; "rouge" a mapping of its four).

    Raises DataError when a component of the overall score is missing, where the official script stops.
    """
    if not isinstance(scores.get("rouge"), dict):
        raise DataError(f"rouge must map {', '.join(ROUGE)} to scores")
    flat = {k: v for name, score in scores.items() for k, v in (score.items() if name == "rouge" else [(name, score)])}
    if lacking := [c.name for c in components(subtask, official_only=True) if c.in_overall and c.name not in flat]:
        raise DataError(f"no score for {', '.join(lacking)}; the overall score needs it")
    return text_table(["all"], {name: [score] for name, score in flat.items()}, subtask).leaderboard()
