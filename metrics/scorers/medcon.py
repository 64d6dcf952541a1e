"""MEDCON (extra `medcon`): overlap of UMLS concepts, found by QuickUMLS in an index of the user's own UMLS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from archehr.data.case import DataError
from archehr.metrics.scorers.neural import Missing

# The 66 semantic types of the official medcon_scorer.py; procedures (T058-T061) are not among them.
# fmt: off
_TYPE_NUMBERS = (
    17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 28, 29, 30, 31, 32, 33, 34, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46,
    47, 48, 49, 50, 67, 68, 69, 70, 74, 75, 85, 86, 87, 88, 103, 104, 109, 114, 116, 120, 121, 122, 123, 125, 126,
    127, 129, 130, 131, 184, 190, 191, 192, 195, 196, 197, 200, 201, 203,
)
# fmt: on
SEMANTIC_TYPES = frozenset(f"T{number:03d}" for number in _TYPE_NUMBERS)
_WINDOW = 5
_THRESHOLD = 1

Concepts = Mapping[str, Sequence[str]]


def medcon(
    predictions: Sequence[str], references: Sequence[str], index: Path | None, spacy_model: str = "en_core_web_sm"
) -> tuple[list[float], dict[int, str]]:
    """MEDCON per case (0 and up; synonyms can lift it over 1), and no unscorable case.

    `index` is a folder made by `python -m quickumls.install`. Part-of-speech tags decide which spans are looked up,
    so scores depend, slightly, on the version of `spacy_model`. Raises Missing without the extra, the index or the
    spaCy model, DataError for an index that cannot be opened.
    """
    _need(index, spacy_model)
    finder = concept_finder(str(index), spacy_model)
    return [concept_f1(finder(r), finder(p)) for p, r in zip(predictions, references, strict=True)], {}


def concept_f1(reference: Concepts, prediction: Concepts) -> float:
    """The official score of two concept tables (matched term -> its CUIs).

    A hit is a term of the reference that shares a CUI with the prediction. Precision and recall both count hits over
    reference terms, so precision, and F1, exceed 1 where several reference terms share one CUI. 0 without hits, also
    where neither text has a concept.
    """
    predicted = {cui for cuis in prediction.values() for cui in cuis}
    hits = sum(any(cui in predicted for cui in cuis) for cuis in reference.values())
    if not hits:
        return 0.0
    precision, recall = hits / len(prediction), hits / len(reference)
    return 2 * precision * recall / (precision + recall)


def concept_finder(index: str, spacy_model: str) -> Callable[[str], Concepts]:
    """A function from text to its concept table, over one open index."""
    matcher, tagger = _matcher(index), _tagger(spacy_model)
    return lambda text: concepts(matcher, tagger(text))


def concepts(matcher: Any, doc: Any) -> dict[str, list[str]]:
    """Matched dictionary term -> CUIs, in order of match, for a tagged spaCy Doc."""
    by_term: dict[str, list[str]] = {}
    # The official call asks for ignore_syntax, which QuickUMLS 1.4 drops: the syntax rules do apply.
    for group in matcher._match(doc):
        for match in group:
            cuis = by_term.setdefault(match["term"], [])
            if match["cui"] not in cuis:
                cuis.append(match["cui"])
    return by_term


@lru_cache(maxsize=2)
def _matcher(index: str) -> Any:
    """QuickUMLS on an index, put together by hand: its constructor downloads stop words and wants its own spaCy model.

    Settings are those of the official scorer, the rest the defaults of QuickUMLS 1.4.
    """
    try:
        from quickumls import constants, toolbox
        from quickumls.core import QuickUMLS
    except ImportError as error:
        raise Missing("needs QuickUMLS, which does not load here: it needs Python 3.10 or 3.11") from error
    folder = Path(index)
    matcher = QuickUMLS.__new__(QuickUMLS)
    matcher.__dict__.update(
        verbose=False,
        overlapping_criteria="score",
        similarity_name="jaccard",
        threshold=_THRESHOLD,
        window=_WINDOW,
        ngram_length=3,
        min_match_length=3,
        keep_uppercase=False,
        accepted_semtypes=SEMANTIC_TYPES,
        valid_punct=constants.UNICODE_DASHES,
        negations=constants.NEGATIONS,
        to_lowercase_flag=(folder / "lowercase.flag").exists(),
        normalize_unicode_flag=(folder / "normalize-unicode.flag").exists(),
        _stopwords=frozenset(Path(__file__).with_name("stopwords.txt").read_text(encoding="utf-8").split()),
    )
    backend = folder / "database_backend.flag"
    try:
        matcher.ss_db = toolbox.SimstringDBReader(str(folder / "umls-simstring.db"), "jaccard", _THRESHOLD)
        matcher.cuisem_db = toolbox.CuiSemTypesDB(
            str(folder / "cui-semtypes.db"),
            database_backend=backend.read_text().strip() if backend.exists() else "leveldb",
        )
    except Exception as error:  # its C libraries raise what they like
        raise DataError(
            f"{index}: not a QuickUMLS index; make one with python -m quickumls.install UMLS {index}"
        ) from error
    return matcher


@lru_cache(maxsize=1)
def _tagger(spacy_model: str) -> Any:
    import spacy

    return spacy.load(spacy_model, exclude=["ner"])


def _need(index: Path | None, spacy_model: str) -> None:
    if find_spec("quickumls") is None or find_spec("spacy") is None:
        raise Missing("needs the extra, pip install '.[medcon]' in the clone, and --umls-index")
    if index is None:
        raise Missing("needs your own UMLS, pass --umls-index, a folder made by python -m quickumls.install")
    if find_spec(spacy_model) is None and not Path(spacy_model).is_dir():
        raise Missing(f"needs a part-of-speech tagger, python -m spacy download {spacy_model}")
