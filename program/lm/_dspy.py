"""Every name of DSPy that is not its public API, in one place: what to look at when DSPy changes."""

from __future__ import annotations

import logging
import os
from typing import Any

# DSPy would otherwise fetch its list of models at first use: prices would change from day to day, and --local-only
# would be broken.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from dspy._vendor.lm15.registry import lookup
from dspy._vendor.lm15.testing import FakeResponse as PaperReply
from dspy._vendor.lm15.transports import StdlibTransport
from dspy.adapters.json_adapter import _get_structured_outputs_response_format as structured_response_format
from dspy.clients._http import retry_after_seconds
from dspy.clients.engines import LiteLLMEngine, LM15Engine
from dspy.clients.errors import wrap_error
from dspy.utils.callback import BaseCallback

__all__ = [
    "BaseCallback",
    "LM15Engine",
    "LiteLLMEngine",
    "PaperReply",
    "StdlibTransport",
    "lookup",
    "model_info",
    "retry_after_seconds",
    "structured_response_format",
    "wrap_error",
]

# At DEBUG level this logger prints whole requests.
logging.getLogger("dspy.clients.cache").setLevel(logging.INFO)


def model_info(provider: str, model: str, **options: Any) -> dict[str, Any]:
    """What DSPy's snapshot of models says of a model; {} where it says nothing. Read at first use: it is large."""
    from dspy.clients.model_metadata import model_info as look_up

    return dict(look_up(provider, model, **options))
