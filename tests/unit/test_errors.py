"""Every error carries a code for programs and a sentence for people, and the tree in the docstring is the real one."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest

from agent_memory import errors
from agent_memory.errors import AgentMemoryError, StorageError, ValidationError

ALL = [thing for _, thing in inspect.getmembers(errors, inspect.isclass) if issubclass(thing, AgentMemoryError)]


@pytest.mark.parametrize("error", ALL)
def test_each_has_a_code_of_its_own_and_advice(error: type[AgentMemoryError]) -> None:
    made = error("What failed.")
    assert re.fullmatch(r"[a-z_]+", made.code)
    assert made.recovery.endswith(".")
    assert made.as_dict() == {"message": "What failed.", "code": made.code, "recovery": made.recovery}
    assert str(made) == "What failed."
    assert error.__doc__


def test_codes_are_unique() -> None:
    assert len({error.default_code for error in ALL}) == len(ALL)


def test_code_and_advice_can_be_given() -> None:
    made = StorageError("x", code="outside_root", recovery="Do this.")
    assert (made.code, made.recovery) == ("outside_root", "Do this.")


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = re.findall(r"^\s*[│├└─ ]*([A-Z]\w+Error)\b", errors.__doc__ or "", re.MULTILINE)
    assert set(drawn) == {error.__name__ for error in ALL}


def test_none_is_called_like_pythons_own_memory_error() -> None:
    assert not any(issubclass(error, MemoryError) for error in ALL)
    assert issubclass(ValidationError, ValueError)


def test_an_error_survives_the_way_to_another_process() -> None:
    made = StorageError("x", code="outside_root", recovery="Do this.")
    copied = pickle.loads(pickle.dumps(made))
    assert copied.as_dict() == made.as_dict()
