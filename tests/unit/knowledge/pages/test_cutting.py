"""Items that are gone leave a page as it was rendered, and nothing else of it changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from agent_memory.knowledge.pages.page import Footnote, OwnText, Page, PageClaim, Section, render
from agent_memory.knowledge.pages.page_files import cut_rendered, page_file, read_page_file, shortened_file
from agent_memory.knowledge.pages.page_items import HEADINGS, REST, TopicItem, consolidate
from tests.rows import check_rows

NOW = datetime(2026, 1, 11, 10, 45, tzinfo=UTC)


def item(number: int, text: str, category: str = "note") -> TopicItem:
    note = Footnote(
        f"epi-{number:012x}", 0, len(text), text, "a (talk)", f"res-{number % 2:012x}", f"mem-{number:012x}"
    )
    said_at = datetime(2026, 1, 1 + number, tzinfo=UTC)
    return TopicItem(note.item, text, note, HEADINGS.get(category, REST), said_at, (number,))


ITEMS = [
    item(1, "The boat [^2] lies at pier *four*.", "decision"),
    item(2, 'Lea said "mem-000000000003): " is no id.'),
    item(3, "The canoe was sold in Bergen last week:\n\n- for ten coins\n  1. in cash\n| a | b |\n"),
    item(4, "The canoe was sold in Bergen last week !"),
    item(5, "Edda plays the cello in a quartet.", "task"),
    replace(item(6, "The canoe was sold in Bergen last week."), trust="low"),
    replace(item(7, "The canoe was sold in Basel last week."), trust="low"),
]


def page_of(items: list[TopicItem]) -> Page:
    return consolidate(Page("Lea"), items, now=NOW).page


@check_rows("gone", [{1}, {2}, {3}, {4}, {5}, {3, 4}, {1, 5}, {1, 2, 3, 4}, {6}, {7}, {3, 4, 7}, {9}])
def test_what_is_left_is_the_page_that_the_other_items_make(gone: set[int]) -> None:
    ids = {f"mem-{number:012x}" for number in gone}
    text = render(page_of(ITEMS))
    short = cut_rendered(text, ids)
    assert short is not None
    assert short == page_of([each for each in ITEMS if each.id not in ids])
    shown = render(short)
    assert f"*Items: {len(ITEMS) - len(gone - {9})} | " in shown
    assert not any(one in shown.replace('"mem-000000000003): " is', "") for one in ids if one != "mem-000000000003")


def test_page_with_joined_claims_is_rebuilt() -> None:
    page = page_of(ITEMS[:3])
    joined = replace(page.claims[1], notes=(*page.claims[1].notes, *page.claims[2].notes))
    text = render(replace(page, sections=(Section("Facts", (joined,)), page.sections[0])))
    assert cut_rendered(text, {ITEMS[1].id}) is None
    assert cut_rendered(text, {ITEMS[1].id, ITEMS[2].id}) is not None


def test_a_page_of_which_nothing_would_be_left_or_with_a_persons_line_on_it_is_to_be_made_anew() -> None:
    text = render(page_of(ITEMS[:1]))
    assert cut_rendered(text, {ITEMS[0].id}) is None
    page = page_of(ITEMS[:2])
    own = replace(page, sections=(*page.sections, Section("Hers", (OwnText("See [^1] and [^2]."),))))
    assert cut_rendered(render(own), {ITEMS[0].id}) is None
    edited = PageClaim("Hers now.", page.claims[0].notes, is_edited=True)
    changed = replace(page, sections=(Section("Facts", (edited, page.claims[1])),))
    assert cut_rendered(render(changed), {ITEMS[0].id}) is None


def test_a_persons_line_below_a_heading_keeps_it() -> None:
    page = page_of(ITEMS)
    title = page.sections[0].title
    own = Section(title, (OwnText("Ask her.\n\n\nAnd again."), *page.sections[0].lines))
    short = cut_rendered(render(replace(page, sections=(own, *page.sections[1:]))), {ITEMS[0].id})
    assert short is not None
    assert short.sections[0] == Section(title, (OwnText("Ask her.\n\n\nAnd again."),))


def test_a_file_stays_one_that_nobody_changed_and_a_changed_one_is_left_alone() -> None:
    text = page_file(page_of(ITEMS), "What Lea said.")
    short = shortened_file(text, {ITEMS[0].id})
    assert short is not None
    assert not (read := read_page_file(short)).is_edited
    assert read.page == page_of(ITEMS[1:])
    assert shortened_file(text.replace("# Lea", "# Leah"), {ITEMS[0].id}) is None
