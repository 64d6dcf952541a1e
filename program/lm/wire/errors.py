"""What may be told of an error, whether it will pass, and when an LM counts as gone."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import dspy
from dspy import lm15

from archehr.program.lm.ledger import where
from archehr.program.lm.policy import without_userinfo
from archehr.program.lm.wire.replies import REFUSED

MAX_WAIT = 60.0  # seconds between two attempts, whatever the server asks for
SEVERAL = 3  # cases in a row that an LM was not reached for, after which a run stops

# Words of a limit that no waiting within a run lifts, as providers put them.
_SPENT = re.compile(
    r"per[\s_-]?(day|week|month)|by(day|month)\b|daily|monthly|\b[rt]pd\b|86400|payment required|\barrears\b"
    r"|insufficient[\s_](quota|balance|credit|fund)|credit balance|(out of|no|more) credits|billing (hard )?limit"
    r"|spend(ing)? (limit|cap)",
    re.IGNORECASE,
)
_FOREVER = re.compile(r"(user location|country|region).{0,40}not supported", re.IGNORECASE)
_ADVICE = "\n\n  To fix:"  # lm15's own, which is not for users
_KEY = re.compile(
    r"api[\s_-]?key.{0,40}(not valid|invalid|incorrect|expired|revoked|disabled|not found)", re.IGNORECASE
)
# Words that a server may quote from the request and that are ours, whatever else the note calls by them.
_OURS = frozenset(
    "temperature max_tokens max_completion_tokens seed response_format json_schema json_object reasoning_effort "
    "reasoning top_p top_k model messages stop user system assistant text minimal low medium high none".split()
)


class LMGone(RuntimeError):
    """No reply came in several cases in a row. The message says why, and where."""


def told(exc: Exception, attempt: int, prompt: str, secrets: Sequence[str], endpoint: str | None) -> Exception:
    """The error to raise: of the class that says whether to try again, with the time that DSPy is to wait before it
    does, and a message without prompt or key that names the server."""
    if isinstance(exc, ImportError):
        return exc
    if not isinstance(exc, lm15.LM15Error):
        # Anything can be in the text of an error that no engine foresaw; pydantic's quote their input.
        return lm15.LM15Error(f"{type(exc).__name__} in the engine")
    asked = exc.retry_after
    # Full jitter over the upper half: workers refused together do not come back together.
    wait = min(asked, MAX_WAIT) if asked is not None else min(2.0**attempt, MAX_WAIT) * random.uniform(0.5, 1.0)
    if exc.provider_code != REFUSED:
        said = exc.message.split(_ADVICE)[0].removesuffix(f" ({exc.status})")
        message = safe_message(said, prompt, secrets)
        error = _as_lasting(exc)
        error.message = f"{message} (at {without_userinfo(endpoint)})" if endpoint else message
        error.args = (error.message,)
        error.retry_after = wait
        return error
    exc.retry_after = wait
    return exc


def in_a_line(error: Exception) -> str:
    """An error without the advice that lm15 adds in lines of its own."""
    return str(error).partition("\n\n")[0]


def _as_lasting(exc: lm15.LM15Error) -> lm15.LM15Error:
    """The error under a class that DSPy does not try again and runs stop at, where it will not pass."""
    if not isinstance(exc, (lm15.RateLimitError, lm15.InvalidRequestError)):
        return exc
    kinds = ((_SPENT, lm15.BillingError), (_FOREVER, lm15.ConfigurationError), (_KEY, lm15.AuthError))
    said = f"{exc.message} {exc.provider_code or ''}"
    for words, kind in kinds:
        if words.search(said):
            lasting: lm15.LM15Error = kind("", provider_code=exc.provider_code, status=exc.status)
            lasting.__cause__ = exc
            return lasting
    return exc


def safe_message(message: str, prompt: str, secrets: Sequence[str] = ()) -> str:
    """A server's error text in one line of at most 300 characters, without keys, and without what it quotes of the
    prompt: four of its words in a row withhold the message, a quoted piece is blotted out."""
    for secret in secrets:
        message = message.replace(secret, "[key]")
    words, sent = re.findall(r"\w+", message.casefold()), " ".join(re.findall(r"\w+", prompt.casefold()))
    if any(" ".join(words[i : i + 4]) in sent for i in range(len(words) - 3)):
        return "the server's message is withheld because it quotes the prompt"

    def blot(match: re.Match[str]) -> str:
        quoted = match[2].strip()
        hidden = quoted not in _OURS and quoted.casefold() in prompt.casefold()
        return f"{match[1]}[…]{match[1]}" if quoted and hidden else match[0]

    message = " ".join(re.sub(r"(['\"`])([^'\"`]+)\1", blot, message).split())
    return message if len(message) <= 300 else message[:297] + "..."


def describe(error: dspy.LMError, prompt: str, secrets: Sequence[str] = ()) -> str:
    """An LM error for a notice: the class and status, then the server's words as far as they may be shown."""
    if error.provider_code == REFUSED:
        return str(error.message)
    status = getattr(error, "status", None)
    kind = type(error).__name__ + (f" (HTTP {status})" if status else "")
    said = safe_message(str(error.message or ""), prompt, secrets)
    return f"{kind}: {said}" if said else kind


def is_outage(error: BaseException) -> bool:
    """Whether no reply came at all: not for a refusal, nor for a reply that could not be used."""
    lost = (dspy.LMTransportError, dspy.LMTimeoutError, dspy.LMServerError, dspy.LMRateLimitError)
    return isinstance(error, lost) and error.provider_code != REFUSED


class Outages:
    """Which stages of which cases an LM was not reached for, in one run; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lost: dict[str, list[str]] = {}
        self._row: set[str] = set()

    def of_case(self, case_id: str) -> list[str]:
        """The stages of a case that fell back for want of an LM."""
        return list(self._lost.get(case_id, ()))

    def lost(self, why: str) -> None:
        """Book a call without a reply on the caller's case and stage; raises LMGone where that is one too many."""
        case, stage = (place or "" for place in where.get())
        with self._lock:
            stages = self._lost.setdefault(case, [])
            if stage not in stages:
                stages.append(stage)
            self._row.add(case)
            if len(self._row) >= SEVERAL:
                raise LMGone(f"no reply in {len(self._row)} cases in a row: {why}")

    def reached(self) -> None:
        """A reply came."""
        with self._lock:
            self._row.clear()


_watched: ContextVar[Outages | None] = ContextVar("archehr_outages", default=None)


@contextmanager
def watching_outages(outages: Outages | None = None) -> Iterator[Outages]:
    """Outages of the calls made inside, beside those in `outages`; outside of this no outage stops anything."""
    token = _watched.set(outages := outages or Outages())
    try:
        yield outages
    finally:
        _watched.reset(token)


def note_outage(why: str) -> None:
    if (outages := _watched.get()) is not None:
        outages.lost(why)


def note_reply() -> None:
    if (outages := _watched.get()) is not None:
        outages.reached()
