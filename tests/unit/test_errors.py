"""Every error carries a code for programs and a sentence for people, and the tree in the docstring is the real one."""

from __future__ import annotations

import inspect
import pickle
import re

from agent_memory import errors
from agent_memory.errors import (
    AgentMemoryError,
    CategoryExistsError,
    CategoryNotFoundError,
    ResourceNotFoundError,
    StorageError,
    ValidationError,
)
from tests.rows import check_rows

ALL = [thing for _, thing in inspect.getmembers(errors, inspect.isclass) if issubclass(thing, AgentMemoryError)]


NAMED = (ResourceNotFoundError, CategoryNotFoundError, CategoryExistsError)
"""These take the name of what they are about, and make their message of it."""


@check_rows("error", [each for each in ALL if each not in NAMED])
def test_each_has_a_code_of_its_own_and_advice(error: type[AgentMemoryError]) -> None:
    made = error("What failed.")
    assert re.fullmatch(r"[a-z_]+", made.code)
    assert made.recovery.endswith(".")
    assert made.as_dict() == {"message": "What failed.", "code": made.code, "recovery": made.recovery}
    assert str(made) == "What failed."
    assert error.__doc__


def test_codes_and_numbers_are_unique() -> None:
    assert len({error.default_code for error in ALL}) == len(ALL)
    assert len({error.number for error in ALL}) == len(ALL)
    assert all(re.fullmatch(r"MEM-0\d\d", error.number) for error in ALL)


def test_the_first_ten_numbers_name_what_they_always_named() -> None:
    names = {error.number: error.__name__ for error in ALL}
    assert [names[f"MEM-00{number}"] for number in range(10)] == [
        "AgentMemoryError", "ResourceNotFoundError", "CategoryNotFoundError", "CategoryExistsError", "EmbeddingError",
        "ExtractionError", "ConsolidationError", "RetrievalError", "VectorIndexError", "StorageError",
    ]  # fmt: skip


@check_rows("error", NAMED)
def test_one_that_names_what_it_is_about_says_so(error: type[AgentMemoryError]) -> None:
    made = error("sales")
    assert made.message in {
        "Resource 'sales' not found.",
        "Category 'sales' not found.",
        "Category 'sales' already exists.",
    }
    assert made.name == error.__name__
    assert "sales" in made.context.values()
    assert made.recovery_suggestions[0] == made.recovery == error.default_recovery
    assert pickle.loads(pickle.dumps(made)).context == made.context


def test_a_missing_category_names_those_that_there_are() -> None:
    assert CategoryNotFoundError("x", ["a", "b"]).recovery_suggestions == [
        "Create the category with create_category().",
        "Available categories: a, b.",
    ]
    assert len(StorageError("x").recovery_suggestions) == 4


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
