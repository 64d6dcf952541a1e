"""How the agreement of reviewers is printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archehr.review.agreement import Against, Agreement


def print_agreement(finished: Mapping[str, int], pairs: Sequence[Agreement], against: Sequence[Against]) -> None:
    """Per pair of reviewers kappa, F1 and where they differ; then marks made with and without the program's."""
    for name, count in finished.items():
        print(f"{name}: {count} finished cases")
    if not pairs:
        print("no two reviewers have finished a case in common, so there is no agreement to tell")
    for pair in pairs:
        _print_pair(pair)
    if any(row.cases for row in against):
        _print_against(against)


def _print_pair(pair: Agreement) -> None:
    first, second = pair.reviewers
    print(f"\n{first} and {second}: {len(pair.cases)} cases, {pair.sentences} note sentences")
    print(f"  Cohen's kappa, three marks            {_figure(pair.kappa, 2)}")
    print(f"  Cohen's kappa, essential or not       {_figure(pair.kappa_essential, 2)}")
    print(f"  F1 of the evidence (essential)        {_figure(pair.evidence_f1, 1)}")
    print(f"  F1 of the links                       {_figure(pair.links_f1, 1)}")
    for case_id, where in pair.differences.items():
        print(f"  case {case_id}: {'; '.join(where)}")
    if pair.differences:
        print("  settle these with --adjudicate")


def _print_against(against: Sequence[Against]) -> None:
    print("\nmarks against the program's    cases  sentences  marked alike  kappa  median seconds a case")
    for row in against:
        who = "by those who saw them" if row.seen else "by those who did not (blind)"
        same = "-" if row.same is None else f"{100 * row.same:.1f} %"
        print(
            f"{who:<29}  {row.cases:>5}  {row.sentences:>9}  {same:>12}  {_figure(row.kappa, 2):>5}  "
            f"{_figure(row.seconds, 0):>21}"
        )


def _figure(value: float | None, digits: int) -> str:
    return "not defined" if value is None else f"{value:.{digits}f}"
