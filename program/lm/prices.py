"""Prices by date, retirement dates and refusals of temperature: the snapshot of models that DSPy carries, mended."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from archehr.program.lm._dspy import model_info
from archehr.program.lm.ledger import Price

SOON = timedelta(days=60)

# Prices that are known to change, which the snapshot gives without a date: the first figure alone.
_GOOGLE = ("gemini", "vertex")
_DATED = {
    "gemini-3.8-flash": (
        Price(0.75, 3.75, cached=0.075, cached_from=4096, until=date(2026, 12, 31)),
        Price(1.50, 7.50, cached=0.15, cached_from=4096),  # cached input at a tenth, as before
    ),
}


def model_facts(provider: str, model: str) -> dict[str, Any]:
    """What the snapshot says of a model at a provider (lm15's or litellm's name); {} where it says nothing."""
    if provider == "vertex":
        # lm15's names for Google Cloud miss the entries of its Gemini models, which the snapshot files by themselves.
        return model_info(provider, model, namespaces=("vertex_ai", "vertex_ai-language-models"))
    return model_info(provider, model)


def find_price(provider: str, model: str, today: date | None = None) -> Price | None:
    """Dollars per million tokens on a day, or None where none is known. The price for long prompts (above 128k or 200k
    tokens) is not looked at: no prompt of this program is that long."""
    today = today or date.today()
    if dated := _DATED.get(model) if provider in _GOOGLE else None:
        return next(price for price in dated if price.until is None or today <= price.until)
    facts = model_facts(provider, model)
    rates = [facts.get(k) for k in ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")]
    given, made, cached = (float(r) * 1e6 if isinstance(r, (int, float)) else None for r in rates)
    least = facts.get("prompt_cache_min_tokens")
    return None if given is None or made is None else Price(given, made, cached, least if isinstance(least, int) else 0)


def batch_price(price: Price | None, provider: str) -> Price | None:
    """What a provider's batch service charges: half, as Google's and OpenAI's price lists say (30 Nov 2026). Google
    bills input from its prefix cache as in any other call; it is the half where that is less."""
    if price is None:
        return None
    given, made = price.input / 2, price.output / 2
    if price.cached is None:
        return replace(price, input=given, output=made)
    cached = min(price.cached, given) if provider == "google-genai" else price.cached / 2
    return replace(price, input=given, output=made, cached=cached)


def retirement_note(name: str, provider: str, model: str, today: date | None = None) -> str | None:
    """One line where the snapshot dates the model's retirement in the past or within 60 days."""
    today = today or date.today()
    told, source = model_facts(provider, model).get("deprecation_date"), "DSPy's list of models"
    if told is None and provider == "gemini":  # the same models, which the list often dates for Google Cloud only
        told, source = model_facts("vertex", model).get("deprecation_date"), f"{source} (for Google Cloud)"
    try:
        retired = date.fromisoformat(str(told))
    except ValueError:
        return None
    if retired > today + SOON:
        return None
    when = f"was to be switched off on {retired}" if retired <= today else f"is to be switched off on {retired}"
    return f"{name} {when}, says {source}; results with it may not be repeatable"


def refuses_temperature(provider: str, model: str) -> bool:
    """Whether the API rejects a temperature for this model: OpenAI's o-series and gpt-5 and later (but not their
    chat variants), and the models that the snapshot marks as taking no sampling parameters."""
    base = model.rsplit("/", 1)[-1].lower()
    if re.match(r"o[1-9]\d*(-|$)|gpt-([5-9]|\d\d)(?!.*chat)", base):
        return True
    return model_facts(provider, model).get("supports_sampling_params") is False
