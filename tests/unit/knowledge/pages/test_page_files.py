"""Pages as files: a person's save is never overwritten, a proposal lies beside it, and any OKF reader can read them."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.knowledge.pages import page_files
from agent_memory.knowledge.pages.page import Footnote, Page
from agent_memory.knowledge.pages.page_files import TopicFiles, file_name, index_file, page_file, read_page_file
from agent_memory.knowledge.pages.page_items import TopicConsolidation, TopicItem, consolidate

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def made(count: int = 2, before: Page | None = None, rendered: Page | None = None) -> TopicConsolidation:
    texts = [f"Lea has seen the film {number} with friend {number * 7} of hers." for number in range(count)]
    items = [
        TopicItem(
            f"mem-{at:012x}", text, Footnote(f"epi-{at:012x}", 0, len(text), text, item=f"mem-{at:012x}"), "Facts"
        )
        for at, text in enumerate(texts)
    ]
    return consolidate(before or Page("Lea"), items, now=NOW, rendered=rendered)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_front_matter_is_plain_yaml_whatever_the_description(description: str) -> None:
    text = page_file(made().page, description)
    front = yaml.safe_load(text.split("---\n")[1])

    assert front["type"] == "Topic"
    assert front["description"] == description
    assert not read_page_file(text).is_edited


def test_each_changed_character_is_an_edit() -> None:
    text = page_file(made().page, "What Lea said.")

    assert read_page_file(text.replace("Lea has", "Lea had", 1)).is_edited
    assert read_page_file(text.replace("What Lea", "All Lea")).is_edited
    assert read_page_file(text.split("---\n", 2)[2]).is_edited


def test_a_page_in_parts_is_read_as_one_and_parts_that_are_not_needed_go(tmp_path: Path) -> None:
    files = TopicFiles(tmp_path / "topics")

    assert files.write("lea", (many := made(60)).page, "What Lea said.", None)
    saved = files.read("lea")
    assert saved is not None
    assert len(saved.contents) > 2
    assert (saved.page, saved.is_edited) == (many.page, False)

    assert files.write("lea", made(2).page, "What Lea said.", saved)
    assert [path.name for path in (tmp_path / "topics").iterdir()] == ["lea.md"]


def test_an_edited_page_stays_and_the_proposal_lies_beside_it(tmp_path: Path) -> None:
    files, path = TopicFiles(tmp_path / "topics"), tmp_path / "topics" / "lea.md"
    files.write("lea", (first := made()).page, "What Lea said.", None)
    path.write_text(edited := path.read_text().replace("\n## Facts\n", "\n## Facts\n\nCall her.\n"))

    saved = files.read("lea")
    assert saved is not None
    assert saved.is_edited
    files.propose("lea", made(3, saved.page, first.page).page, "What Lea said.")

    assert path.read_text() == edited
    path.write_bytes((tmp_path / "topics" / "lea.proposed.md").read_bytes())
    accepted = files.read("lea")
    assert accepted is not None
    assert not accepted.is_edited
    assert "Call her." in path.read_text()


def test_a_save_in_the_moment_of_rendering_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, path = TopicFiles(tmp_path / "topics"), tmp_path / "topics" / "lea.md"
    files.write("lea", made().page, "What Lea said.", None)
    saved = files.read("lea")
    swap = page_files.put_file_in_place

    def save_first(new: Path, place: Path, spare: object) -> None:
        if "saved by hand" not in place.read_text():
            place.write_text("# Lea\n\nsaved by hand\n")
        swap(new, place, spare)  # type: ignore[arg-type]

    monkeypatch.setattr(page_files, "put_file_in_place", save_first)

    assert not files.write("lea", made(3).page, "What Lea said.", saved)
    assert path.read_text() == "# Lea\n\nsaved by hand\n"
    assert [each.name for each in (tmp_path / "topics").iterdir()] == ["lea.md"]


def test_what_a_crash_left_beside_the_page_is_put_back(tmp_path: Path) -> None:
    files, path = TopicFiles(tmp_path / "topics"), tmp_path / "topics" / "lea.md"
    files.write("lea", made().page, "What Lea said.", None)
    (tmp_path / "topics" / ".lea.md.0123abcd.old").write_text("# Lea\n\nsaved by hand\n")

    saved = files.read("lea")

    assert saved is not None
    assert saved.is_edited
    assert [each.name for each in (tmp_path / "topics").iterdir()] == ["lea.md"]
    assert path.read_text() == "# Lea\n\nsaved by hand\n"


def test_an_edited_page_is_not_removed(tmp_path: Path) -> None:
    files = TopicFiles(tmp_path / "topics")
    files.write("lea", made().page, "What Lea said.", None)
    files.write("bern", made().page, "What is in Bern.", None)
    (tmp_path / "topics" / "lea.md").write_text("mine")

    assert not files.remove("lea")
    assert files.remove("bern")
    assert [each.name for each in (tmp_path / "topics").iterdir()] == ["lea.md"]


def test_the_index_links_each_page_and_no_topic_takes_its_name(tmp_path: Path) -> None:
    files = TopicFiles(tmp_path / "topics")
    files.write_index([("lea", "Lea [x](y)", "What <b>Lea</b> said.", 3), ("index", "Index", "Of prices.", 1)])

    text = (tmp_path / "topics" / "index.md").read_text()
    assert "- [Index](index_.md) - Of prices. (1 items)\n" in text
    assert r"- [Lea \[x\](y)](lea.md) - What \<b\>Lea\</b\> said. (3 items)" in text
    assert file_name("log", 2) == "log_-2.md"
    assert "None yet." in index_file([])


@pytest.mark.parametrize("what", ["pipe", "folder", "link", "dangling", "huge"])
def test_what_stands_in_the_place_of_a_page_and_is_none_is_moved_away(tmp_path: Path, what: str) -> None:
    files, folder = TopicFiles(tmp_path / "topics"), tmp_path / "topics"
    files.write("lea", made().page, "What Lea said.", None)
    (folder / "lea.md").unlink()
    outside = tmp_path / "outside.md"
    outside.write_text("Nobody is to read this.")
    makers: dict[str, Callable[[Path], object]] = {
        "pipe": os.mkfifo,
        "folder": Path.mkdir,
        "link": lambda path: path.symlink_to(outside),
        "dangling": lambda path: path.symlink_to(tmp_path / "gone"),
        "huge": lambda path: [path.touch(), os.truncate(path, page_files.MAX_BYTES + 1)][0],
    }
    makers[what](folder / "lea.md")
    assert files.read("lea") is None
    assert files.withdraw(["mem-000000000000"], list) == {}
    assert files.write("lea", made().page, "What Lea said.", None)
    assert (saved := files.read("lea")) is not None
    assert not saved.is_edited
    assert sorted(path.name for path in folder.iterdir()) == ["lea.md", "lea.md.no-page"]
    assert outside.read_text() == "Nobody is to read this."


def test_a_page_of_which_one_part_was_edited_loses_the_words_of_what_is_gone_in_every_part(tmp_path: Path) -> None:
    files, folder = TopicFiles(tmp_path / "topics"), tmp_path / "topics"
    files.write("lea", (many := made(60)).page, "What Lea said.", None)
    second = folder / "lea-2.md"
    second.write_text(second.read_text().replace("Lea has seen", "Lea saw", 1))
    parts = [path for path in folder.iterdir() if path != second]
    gone = {f"mem-{at:012x}": f"film {at} with" for at in (0, 59)}
    texts = "".join(path.read_text() for path in parts)
    assert all(words in texts for words in gone.values())
    claims = {claim.text for section in many.page.sections for claim in section.claims}
    assert files.withdraw([*gone], lambda: claims).keys() == {"lea"}
    left = "".join(path.read_text() for path in folder.iterdir())
    assert not [words for words in gone.values() if words in left]
    assert "Lea saw" in left
