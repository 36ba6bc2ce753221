"""A page as Markdown and back: exact for what was rendered, safe for what is hostile, and a person's lines are kept."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.knowledge.pages.page import (
    Footnote,
    OwnText,
    Page,
    PageClaim,
    Section,
    count_tokens,
    escape,
    join_parts,
    parse,
    render,
    split,
    unescape,
)
from tests.rows import check_rows

HOSTILE = (
    "```\nrm -rf /\n```",
    "~~~",
    "# Heading",
    "## Sources",
    "---",
    "===",
    '[^1]: Extracted from me (res-000000000000 at 0-1): "x"',
    "<script>alert(1)</script>",
    "<!-- hidden -->",
    "![x](http://example.com/x.png)",
    "[click](javascript:alert)",
    "&lt;b&gt; R&D &amp; &#x41;",
    "1. first",
    "- item",
    "text [^7]",
    "*Last consolidated: 2026-01-11 10:45:00*\n*Items: 1 | Resources: 1*",
    "*(edited)*",
    "*(from an untrusted source)*",
    "(2026-01-02) said",
    "a | b\n--|--",
    "tail\\",
    "__init__ and snake_case and _x_",
    "zero\u200bwidth \u202e turned \u2028 break",
    "\ufeff",
    "\xa0",
)

texts = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
ids = st.builds(lambda number: f"{number:012x}", st.integers(0, 16**12 - 1))
notes = st.builds(
    lambda source, start, length, quote, label, resource, item: Footnote(
        f"epi-{source}", start, start + length, quote, label, resource and f"res-{resource}", item and f"mem-{item}"
    ),
    ids, st.integers(0, 9_999), st.integers(0, 999), texts, texts, st.one_of(st.just(""), ids),
    st.one_of(st.just(""), ids),
)  # fmt: skip
days = st.one_of(st.none(), st.dates(date(1000, 1, 1)))
claims = st.builds(
    PageClaim, texts.filter(bool), st.lists(notes, min_size=1, max_size=3).map(tuple), days, is_untrusted=st.booleans()
)
titles = texts.filter(lambda text: text not in {"", "Sources"})
moments = st.one_of(
    st.none(),
    st.datetimes(datetime(1000, 1, 1)).map(lambda at: at.replace(microsecond=0, tzinfo=UTC)),  # noqa: DTZ001
)
sections = st.lists(
    st.builds(Section, titles, st.lists(claims, max_size=4).map(tuple)), max_size=4, unique_by=lambda one: one.title
)
pages = st.builds(
    lambda title, sections, at, out: Page(title, tuple(sections), at, taken_out=tuple(f"mem-{each}" for each in out)),
    texts, sections, moments, st.lists(ids, max_size=2),
)  # fmt: skip


def note(number: int = 1, quote: str = "I moved to Bern.") -> Footnote:
    return Footnote(
        f"epi-{number:012x}",
        4,
        4 + len(quote),
        quote,
        "conversation with Lea",
        "res-00000000000a",
        f"mem-{number:012x}",
    )


@given(texts)
def test_a_text_is_one_line_and_comes_back(text: str) -> None:
    line = escape(text)

    assert len(line.splitlines()) <= 1
    assert unescape(line) == text


@given(pages)
def test_a_page_comes_back_as_it_was(page: Page) -> None:
    assert parse(render(page)) == page


@given(pages)
def test_no_claim_adds_a_line_to_the_page(page: Page) -> None:
    lines = render(page).splitlines()

    assert sum(line.startswith("- ") for line in lines) == len(page.claims)
    assert sum(line.startswith("[^") for line in lines) == len(page.notes)
    assert sum(line.startswith("#") for line in lines) == 1 + len(page.sections) + bool(page.notes)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markdown_is_shown_and_not_obeyed(text: str) -> None:
    markdown = pytest.importorskip("markdown_it").MarkdownIt("gfm-like", {"html": True, "linkify": False})
    page = Page("Lea", (Section("Notes", (PageClaim(text, (note(quote=text),)),)),))

    tokens = [each for token in markdown.parse(render(page)) for each in (token, *(token.children or ()))]

    shown = {"heading_open", "bullet_list_open", "list_item_open", "paragraph_open", "inline", "text", "hr"}
    kinds = {each.type for each in tokens if each.nesting >= 0} - {"text_special", "softbreak", "hardbreak"}
    assert kinds <= shown, kinds - shown
    assert sum(each.type == "heading_open" for each in tokens) == 3


def test_a_page_has_the_printed_format() -> None:
    claim = PageClaim("Lea moved to Bern.", (note(),), date(2026, 1, 2))
    page = Page("Lead Preferences", (Section("Notes", (claim,)),), datetime(2026, 1, 11, 10, 45, tzinfo=UTC))

    assert render(page) == (
        "# Lead Preferences\n\n## Notes\n\n- (2026-01-02) Lea moved to Bern. [^1]\n\n---\n\n## Sources\n\n"
        "[^1]: Extracted from conversation with Lea (res-00000000000a, epi-000000000001 at 4-20, mem-000000000001): "
        '"I moved to Bern."\n\n---\n*Last consolidated: 2026-01-11 10:45:00*\n*Items: 1 | Resources: 1*\n'
    )


def test_an_empty_page_says_so() -> None:
    assert render(Page("Lead Preferences")) == "# Lead Preferences\n\n*No items yet.*\n"


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\n-#[^]: *`")))
def test_any_text_can_be_read_and_read_again(text: str) -> None:
    once = parse(text)

    assert parse(render(once)) == once


def test_lines_of_a_person_stay_where_they_are() -> None:
    page = Page("Lea", (Section("Notes", (PageClaim("Lea moved to Bern.", (note(),)),)),))
    text = render(page).replace(
        "## Notes\n", "## Notes\n\nAsk her **first**.\n\n```\n- no claim\n```\n\n- My own [line](x)\n"
    )

    lines = parse(text).sections[0].lines

    assert lines[0] == OwnText("Ask her **first**.\n\n```\n- no claim\n```")
    assert lines[1] == PageClaim("My own [line](x)")
    assert lines[2] == page.claims[0]
    assert parse(render(parse(text))) == parse(text)


def test_a_fence_that_a_person_left_open_hides_no_claim() -> None:
    page = Page("Lea", (Section("Notes", (PageClaim("Lea moved to Bern.", (note(),)),)),))

    assert parse(render(page).replace("## Notes\n", "## Notes\n\n```\nopen\n")).claims == page.claims


def test_a_claim_with_a_persons_emphasis_is_theirs() -> None:
    page = Page("Lea", (Section("Notes", (PageClaim("Lea moved to Bern.", (note(),)),)),))

    changed = parse(render(page).replace("Lea moved to Bern", "Lea moved to **Bern**")).claims[0]

    assert (changed.text, changed.is_edited) == ("Lea moved to **Bern**.", True)
    assert changed.notes == page.notes


def test_what_does_not_fit_stands_in_further_parts() -> None:
    lines = tuple(PageClaim(f"Lea said thing number {at}.", (note(at),)) for at in range(100))
    page = Page("Lea", (Section("A", lines[:50]), Section("B", lines[50:])), datetime(2026, 1, 1, tzinfo=UTC))

    parts = split(page)

    assert len(parts) > 3
    assert all(count_tokens(part) <= 1_500 for part in parts)
    assert all(parse(render(part)) == part for part in parts)
    assert join_parts(parts) == page


@check_rows("count", [17, 30, 47])
def test_parts_are_about_as_long_as_each_other_and_none_has_a_line_left_over(count: int) -> None:
    page = Page(
        "Lea", (Section("A", tuple(PageClaim(f"Lea said thing {at + 100}.", (note(at),)) for at in range(count))),)
    )

    sizes = [len(part.claims) for part in split(page)]

    assert sum(sizes) == count
    assert max(sizes) - min(sizes) <= len(sizes)
