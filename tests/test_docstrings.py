"""Every public name shows its use, and what it shows is so."""

from __future__ import annotations

import doctest
import inspect
import sys

import pytest

import archehr


@pytest.mark.parametrize("name", archehr.__all__)
def test_the_example_of_a_public_name_is_so(name: str) -> None:
    shown = getattr(archehr, name)
    module = sys.modules[shown.__module__]
    (test,) = [t for t in doctest.DocTestFinder(recurse=False).find(shown, name, module, vars(module).copy()) if t]
    assert test.examples, f"{name} has no example"
    assert inspect.getdoc(shown).count("Example:") == 1
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0
