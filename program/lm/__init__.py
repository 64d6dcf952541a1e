"""Every LM the program asks: made by name, counted, paced, budgeted, checked and cached."""

from archehr.program.lm.backend import Backend, Engine, accepts_temperature, in_process, is_hosted, prompt_parts
from archehr.program.lm.cache import configure_cache
from archehr.program.lm.ledger import Budget, BudgetExceeded, Ledger, at, budget_error
from archehr.program.lm.make import make_lm, metered_lm
from archehr.program.lm.policy import LMConfigError, is_loopback
from archehr.program.lm.settings import LMSettings

__all__ = [
    "Backend",
    "Budget",
    "BudgetExceeded",
    "Engine",
    "LMConfigError",
    "LMSettings",
    "Ledger",
    "accepts_temperature",
    "at",
    "budget_error",
    "configure_cache",
    "in_process",
    "is_hosted",
    "is_loopback",
    "make_lm",
    "metered_lm",
    "prompt_parts",
]
