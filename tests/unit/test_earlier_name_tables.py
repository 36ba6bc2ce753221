"""Earlier import paths give the modules of the present ones."""

from __future__ import annotations

from importlib import import_module

import pytest

from agent_memory.earlier_name_tables import MODULES
from tests.rows import check_rows


@check_rows(("earlier", "present"), MODULES.items())
def test_earlier_path_gives_the_present_module(earlier: str, present: str) -> None:
    module = import_module(earlier)
    assert module is import_module(present)
    assert module.__spec__ is not None
    assert module.__spec__.name == present


def test_module_below_an_earlier_path_is_found() -> None:
    assert import_module("agent_memory.entities.matching.matcher").__name__.startswith("agent_memory.knowledge.")


def test_unknown_module_below_an_earlier_path_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        import_module("agent_memory.entities.no_such")
