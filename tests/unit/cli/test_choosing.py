"""Which agent a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.cli.options import choose_agent
from agent_memory.errors import IdentityError, StorageError, ValidationError
from agent_memory.files.layout import agents_under
from tests.support import raises

if TYPE_CHECKING:
    from pathlib import Path


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).mkdir(parents=True)
        (root / name / "memories.yaml").touch()


def test_agents_are_the_folders_with_a_journal(root: Path) -> None:
    make(root, "zoe", "bob", "_workspaces", "not an agent")
    (root / "empty").mkdir()
    (root / "file").touch()
    assert agents_under(root) == ["bob", "zoe"]


def test_a_root_that_does_not_exist_has_no_agents(root: Path) -> None:
    assert agents_under(root) == []
    assert not root.exists()


def test_the_only_agent_is_the_default(root: Path) -> None:
    make(root, "bob")
    assert choose_agent(None, root, may_be_new=False) == "bob"


def test_several_agents_are_listed(root: Path) -> None:
    make(root, "bob", "zoe")
    with raises(IdentityError, "which_agent", match="bob, zoe"):
        choose_agent(None, root, may_be_new=True)


def test_a_crowd_is_not_listed_whole(root: Path) -> None:
    make(root, *(f"agent{number:02}" for number in range(25)))
    with pytest.raises(IdentityError, match="agent19 and 5 more"):
        choose_agent(None, root, may_be_new=False)


def test_an_empty_root_says_how_to_begin(root: Path) -> None:
    with raises(IdentityError, "no_agents") as caught:
        choose_agent(None, root, may_be_new=True)
    assert "agent-memory store TEXT" in caught.value.recovery


def test_a_name_is_taken_in_its_spelling_on_disk(root: Path) -> None:
    make(root, "Bob")
    assert choose_agent("bOB", root, may_be_new=False) == "Bob"


def test_a_mistyped_name_is_refused_with_the_names_there_are(root: Path) -> None:
    make(root, "bob")
    with raises(IdentityError, "unknown_agent", match="There are: bob"):
        choose_agent("bbo", root, may_be_new=False)


def test_a_command_that_stores_may_begin_an_agent(root: Path) -> None:
    assert choose_agent("new", root, may_be_new=True) == "new"
    assert not root.exists()


def test_a_name_that_cannot_be_one_is_refused(root: Path) -> None:
    with pytest.raises(ValidationError):
        choose_agent("../etc", root, may_be_new=True)


def test_a_root_that_is_a_file_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError):
        choose_agent("bob", tmp_path / "file", may_be_new=True)
