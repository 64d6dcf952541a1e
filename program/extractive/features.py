"""What the evidence model sees of each note sentence: a matrix of interpretable numbers, one row a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from program.extractive.focus import asks
from program.extractive.sections import KINDS, Place, places
from program.extractive.text import terms

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float64]]

# How notes say why, what is to be expected, what was decided, and so on: families of cue words.
CUES = {
    "cause": r"due to|2/2|d/t|attribut|felt to|felt (?:most|this|picture|presentation)|because|caus|secondary to|given|c/w|consistent with"
    r"|in (?:the )?setting of|etiolog|likely|suspect|trigger|precipitat|provok|contribut|ascribed|in keeping with|explain|owing|account",
    "outlook": r"expect|anticipat|recover|permanent|improv|resol|prognos|chance|odds|weeks to months|long.?term|should|will|may|risk|revers",
    "decision": r"decision|decided|not (?:felt|indicated|offered|favou?r|pursued|recommended|attempted|given|a candidate)|no indication|deferred"
    r"|declin|unsafe|opted|elected|felt|recommend|advis|agreed|prefer|considered|rather than|instead|avoid|contraindicat|benefit",
    "plan": r"plan|schedul|follow.?up|f/u|clinic|outpatient|outpt|repeat|referral|appointment|through|until|weeks|months|to be",
    "change": r"start|stop|discontinu|d/c'?d|held|hold|resum|restart|switch|chang|taper|transition|increas|decreas|initiat|begun|began",
    "finding": r"\bct\b|\bmri\b|show|reveal|demonstrat|found|biops|patholog|positive|\bpos\b|elevated|cultur|echo|\btte\b|\begd\b|angiogra|exam",
    "negative": r"negative|\bneg\b|without|w/o|normal|\bno\b|unremarkable|stable|denies",
    "told": r"discuss|explain|communicat|told|family|per \w+|consult|team|seen by|meeting|\bdr\b",
    "response": r"improv|resol|return|remain|respon|came down|weaned|trend|since|after|then|->",
    "treated": r"receiv|given|treated|placed|underwent|perform|taken|admin|s/p|\bx\d",
}  # fmt: skip
_CUES = {name: re.compile(rf"(?:{pattern})", re.IGNORECASE) for name, pattern in CUES.items()}
ASKED = {
    "why": r"\bwhy\b|caus|reason|how come|what made|explain|due to|from what|what is this|what happened",
    "outcome": r"\bwill\b|again|recover|normal|forever|permanent|life|how long|when|expected|chance|go back|better|come back",
    "choice": r"\bwhy (?:did|didn|not|no|was|were|can|couldn)|should|necessary|needed|instead|choice|option|safe|could(?:n.?t)? they",
}
_ASKED = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in ASKED.items()}

STRUCTURE = [
    "position", "position_from_end", "place_in_block", "block_length", "length", "length_squared", "is_header",
    "numbers", "has_date", *(f"section_{kind}" for kind in (*KINDS, "other")),
]  # fmt: skip


def structure_features(texts: Sequence[str], where: Sequence[Place]) -> Matrix:
    """(sentences, len(STRUCTURE)): what is known without reading the question: position, length, header, section."""
    import numpy as np

    count = len(texts)
    blocks = np.array([p.block for p in where])
    sizes = np.bincount(blocks)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows = []
    for i, (text, place) in enumerate(zip(texts, where, strict=True)):
        size = sizes[place.block]
        length = len(text.split())
        kinds = [float(place.kind == kind) for kind in (*KINDS, "other")]
        rows.append(
            [i / max(count - 1, 1), np.log1p(count - 1 - i), (i - starts[place.block]) / size, np.log1p(size),
             np.log1p(length), min(length, 40) ** 2 / 400, float(place.is_header), np.log1p(len(re.findall(r"\d+", text))),
             float("[**" in text), *kinds]
        )  # fmt: skip
    return np.array(rows)


TOPIC = [
    *(f"{query}_{how}" for query in ("question", "focus", "narrative") for how in ("all", "words", "concepts", "covered", "rank")),
    "title_question", "title_narrative", "block_mean", "block_max", "before", "after", "first_pass", "first_pass_rank", "feedback", "feedback_rank",
    "central",
]  # fmt: skip


def topic_features(question: str, narrative: str, texts: Sequence[str], where: Sequence[Place]) -> Matrix:
    """(sentences, len(TOPIC)): closeness to the question, the message's questions and the whole message, of the
    sentence itself, its block, its header and its neighbours, by TF-IDF fitted on the case alone."""
    import numpy as np

    focus = " ".join(a.text for a in asks(narrative)[:3])
    queries = [question, focus, narrative]
    views = [_vectors(texts, queries, [p.title for p in where], keep) for keep in (None, False, True)]
    columns: list[Matrix] = []
    for k in range(len(queries)):
        similar = [_dot(sentences, asked[k]) for sentences, asked, _ in views]
        covered = _dot((views[0][0] > 0).astype(float), asked_weights(views[0][1][k]))
        columns += [*similar, covered, _rank(similar[0])]
    sentences, asked, titles = views[0]
    columns += [_dot(titles, asked[0] + asked[1]), _dot(titles, asked[2])]
    own = columns[0] + columns[5] + columns[10]
    blocks = np.array([p.block for p in where])
    sizes = np.maximum(np.bincount(blocks), 1)
    highest = np.zeros(len(sizes))
    np.maximum.at(highest, blocks, own)
    columns += [(np.bincount(blocks, own) / sizes)[blocks], highest[blocks]]
    columns += [np.concatenate([[0.0], own[:-1]]), np.concatenate([own[1:], [0.0]])]
    first = own + 0.5 * columns[-4] + 0.25 * (columns[-2] + columns[-1]) + columns[15]
    best = np.argsort(-first, kind="stable")[: max(3, len(texts) // 8)]
    model = sentences[best].mean(axis=0)
    feedback = _dot(sentences, np.asarray(model).ravel())
    central = _dot(sentences, np.asarray(sentences.mean(axis=0)).ravel())
    columns += [first, _rank(first), feedback, _rank(feedback), central]
    return np.column_stack(columns)


def cue_features(question: str, narrative: str, texts: Sequence[str]) -> Matrix:
    """(sentences, len(CUE_NAMES)): cue words, and the same where the message asks for what they tell."""
    import numpy as np

    focus = question + " " + " ".join(a.text for a in asks(narrative)[:3])
    asked = [float(bool(p.search(focus))) for p in _ASKED.values()]
    rows = []
    for text in texts:
        cues = {name: min(len(p.findall(text)), 3) for name, p in _CUES.items()}
        rows.append(
            [*cues.values(), cues["cause"] * asked[0], cues["outlook"] * asked[1], cues["plan"] * asked[1],
             cues["decision"] * asked[2]]
        )  # fmt: skip
    return np.array(rows, dtype=float)


CUE_NAMES = [*CUES, "cause_asked", "outlook_asked", "plan_asked", "decision_asked"]


def _vectors(
    texts: Sequence[str], queries: Sequence[str], titles: Sequence[str], concepts: bool | None
) -> tuple[Any, Any, Any]:
    """TF-IDF rows of the sentences, dense rows of the queries, rows of the titles; idf from the case's sentences.
    `concepts`: only concepts (True), only words (False), both (None)."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    def analyse(text: str) -> list[str]:
        return [t for t in terms(text) if concepts is None or t.startswith("=") == concepts]

    vectorizer = TfidfVectorizer(analyzer=analyse, sublinear_tf=True)
    try:
        sentences = vectorizer.fit_transform([*texts, *queries])[: len(texts)]
    except ValueError:  # no term anywhere: punctuation only
        from scipy.sparse import csr_matrix

        return csr_matrix((len(texts), 1)), np.zeros((len(queries), 1)), csr_matrix((len(titles), 1))
    return sentences, vectorizer.transform(queries).toarray(), vectorizer.transform(titles)


def asked_weights(query: Matrix) -> Matrix:
    return query


def _dot(rows: Any, vector: Matrix) -> Matrix:
    import numpy as np

    return np.asarray(rows @ vector).ravel()


def _rank(values: Matrix) -> Matrix:
    """0 for the highest value of the case ... 1 for the lowest."""
    import numpy as np

    order = np.argsort(np.argsort(-values, kind="stable"), kind="stable")
    return order / max(len(values) - 1, 1)


def sentence_features(question: str, narrative: str, texts: Sequence[str]) -> Matrix:
    """(sentences, len(NAMES)). Works on any text, any number of sentences from 1."""
    import numpy as np

    where = places(texts)
    return np.hstack(
        [
            structure_features(texts, where),
            topic_features(question, narrative, texts, where),
            cue_features(question, narrative, texts),
        ]
    )


NAMES = [*STRUCTURE, *TOPIC, *CUE_NAMES]
