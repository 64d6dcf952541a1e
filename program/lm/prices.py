"""Prices, retirement dates and refusals of temperature, from the snapshot of models that DSPy carries."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

from archehr.program.lm._dspy import model_info
from archehr.program.lm.ledger import Price

SOON = timedelta(days=60)


def model_facts(provider: str, model: str) -> dict[str, Any]:
    """What the snapshot says of a model at a provider (lm15's or litellm's name); {} where it says nothing."""
    if provider == "vertex":
        # lm15's names for Google Cloud miss the entries of its Gemini models, which the snapshot files by themselves.
        return model_info(provider, model, namespaces=("vertex_ai", "vertex_ai-language-models"))
    return model_info(provider, model)


def find_price(provider: str, model: str) -> Price | None:
    """Dollars per million tokens, or None where the snapshot has no price. The price for long prompts (above 128k
    or 200k tokens) is not looked at: no prompt of this program is that long."""
    facts = model_facts(provider, model)
    rates = [facts.get(k) for k in ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")]
    given, made, cached = (float(r) * 1e6 if isinstance(r, (int, float)) else None for r in rates)
    return None if given is None or made is None else Price(given, made, cached)


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
