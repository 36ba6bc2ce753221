"""What the doctor is told of the folder with the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.knowledge.inspection import check_pages

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "topics"
    made.mkdir()
    return made


def test_of_a_missing_folder_nothing_is_told(tmp_path: Path) -> None:
    assert list(check_pages(tmp_path / "topics")) == []


def test_a_file_in_the_place_of_the_folder_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "topics").write_text("no")
    (found,) = check_pages(tmp_path / "topics")
    assert found.code == "topics_unusable"
    assert found.advice == "Move it away; the next background work rebuilds the pages."


def test_pages_proposals_and_the_index_are_pages(folder: Path) -> None:
    for name in ("index.md", "index_.md", "boats.md", "boats-2.md", "boats.proposed.md"):
        (folder / name).write_text("# Boats")
    (found,) = check_pages(folder)
    assert (found.code, found.sentence) == ("topics", "5 files with pages.")


def test_what_can_be_no_page_is_named_with_the_reason(folder: Path) -> None:
    (folder / "boats.md").mkdir()
    (folder / "cats.md").symlink_to("/etc/hostname")
    (folder / "notes.txt").write_text("mine")
    (found,) = check_pages(folder)
    assert found.code == "topics_odd"
    assert found.details == ("boats.md: a folder", "cats.md: a symbolic link", "notes.txt: not named as a page")


def test_what_is_too_large_and_what_was_moved_aside_are_told_apart(folder: Path) -> None:
    (folder / "long.md").write_bytes(b"x" * (4 * 1024 * 1024 + 1))
    (folder / "dogs.md.no-page").write_text("moved")
    found = {each.code: each.details for each in check_pages(folder)}
    assert found == {"topics_odd": ("long.md: larger than 4 MiB",), "topics_aside": ("dogs.md.no-page",)}
