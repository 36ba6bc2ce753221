"""A page rebuilt loses nothing without a reason, joins no items, and leaves a person's words alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.knowledge.pages.page import UNTRUSTED, Footnote, OwnText, Page, PageClaim, parse, render
from agent_memory.knowledge.pages.page_items import (
    DOCUMENTS,
    GONE,
    HEADINGS,
    REST,
    TAKEN_OUT,
    PagePlace,
    TopicConsolidation,
    TopicItem,
    consolidate,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEXTS = ("Lea moved to Bern.", "Lea likes tea.", "The gate opens at nine.", "Deploys need two reviews.")


def item(number: int, text: str = "", category: str = "note") -> TopicItem:
    text = text or f"Lea said {TEXTS[number % 4]} {number}"
    memory = f"mem-{number:012x}"
    note = Footnote(f"epi-{number:012x}", 0, len(text), text, "conversation with Lea", "res-00000000000a", memory)
    return TopicItem(memory, text, note, HEADINGS.get(category, REST), NOW + timedelta(hours=number), (number,))


def made(*items: TopicItem, before: Page | None = None) -> TopicConsolidation:
    return consolidate(before or Page("Lea"), items, now=NOW)


def test_items_stand_below_the_headings_of_their_kind_in_the_order_they_were_said() -> None:
    page = made(item(3), item(1), item(2, "Lea prefers tea.", "preference")).page

    assert [section.title for section in page.sections] == ["Preferences", "Facts"]
    assert [claim.notes[0].item[-1] for claim in page.claims] == ["2", "1", "3"]


def test_what_is_gone_is_named_with_the_reason() -> None:
    before = made(item(1), item(2), item(3)).page

    result = made(item(3), before=before)

    assert {(each.item[-1], each.reason) for each in result.dropped} == {("1", GONE), ("2", GONE)}
    assert result.page.items == (item(3).id,)


def test_page_of_equal_items_has_a_claim_for_each() -> None:
    low = replace(item(3, "Lea moved to Bern."), trust="low")

    claims = made(item(1, "Lea moved to Bern."), item(2, "Lea moved to Bern."), low).page.claims

    assert [(claim.items, claim.is_untrusted) for claim in claims] == [
        ((item(1).id,), False),
        ((item(2).id,), False),
        ((low.id,), True),
    ]


def test_page_with_description_keeps_it_below_the_title() -> None:
    page = consolidate(Page("Lea"), [item(1)], now=NOW, about="What *Lea* said.").page

    assert "# Lea\n\n*About: What \\*Lea\\* said.*\n\n## Facts" in render(page)
    assert parse(render(page)) == page


def test_page_with_headings_keeps_their_order() -> None:
    items = [replace(item(number), heading=title) for number, title in enumerate(["B", "", "A", "Decisions", "B"])]

    assert [section.title for section in made(*items).page.sections] == ["", "Decisions", "B", "A"]


def test_page_of_document_keeps_place_of_section_called_decisions() -> None:
    titles = ["", "Steps", "Decisions", "Facts", "Limits"]
    places = [PagePlace(DOCUMENTS, 0, "res-1", start, start) for start in range(len(titles))]
    items = [
        replace(item(number), heading=title, order=place)
        for number, (title, place) in enumerate(zip(titles, places, strict=True))
    ]

    assert [section.title for section in made(*items).page.sections] == titles


def test_a_person_who_rewords_a_claim_leaves_the_mark_or_takes_it_off() -> None:
    low = replace(item(1, "Lea moved to Bern."), trust="low")
    rendered = made(low).page
    text = render(rendered)
    assert f"- (2026-03-01) Lea moved to Bern. {UNTRUSTED} [^1]" in text

    def proposed(changed: str) -> tuple[PageClaim, ...]:
        return consolidate(parse(changed), [low], now=NOW, rendered=rendered).page.claims

    [left] = proposed(text.replace("Bern. *", "Basel. *"))
    [taken] = proposed(text.replace(f"Bern. {UNTRUSTED}", "Basel."))
    [unchanged] = proposed(text.replace(f" {UNTRUSTED}", ""))
    assert (left.text, left.is_edited, left.is_untrusted) == ("Lea moved to Basel.", True, True)
    assert (taken.text, taken.is_edited, taken.is_untrusted) == ("Lea moved to Basel.", True, False)
    assert unchanged == rendered.claims[0]


def test_a_changed_item_changes_its_claim() -> None:
    before = made(item(1)).page

    assert [claim.text for claim in made(item(1, "Lea left."), before=before).page.claims] == ["Lea left."]


def test_what_was_said_at_one_time_stands_in_the_order_of_the_talk() -> None:
    first, second = (replace(item(number), said_at=NOW, order=(9 - number,)) for number in (1, 2))

    assert made(first, second).page.items == (second.id, first.id)


def test_a_persons_words_stay_and_what_they_took_out_does_not_come_back() -> None:
    bern, tea, song = item(1, "Lea moved to Bern."), item(2, "Lea likes tea."), item(3, "Lea sings.")
    rendered = made(bern, tea, song).page
    changed = render(rendered).replace(
        "- (2026-03-01) Lea moved to Bern.", "Call her.\n\n- (2026-03-01) Lea is in *Basel*."
    )
    edited = parse("\n".join(line for line in changed.splitlines() if not line.startswith("- (2026-03-01) Lea likes")))

    first = consolidate(edited, [bern, tea, song, item(4, "Lea dances.")], now=NOW, rendered=rendered)
    second = consolidate(parse(render(first.page)), [song, tea], now=NOW)

    assert first.is_proposal
    said = [line.text for _, line in first.page.lines()]
    assert said == ["Call her.", "Lea is in *Basel*.", "Lea sings.", "Lea dances."]
    assert [each.reason for each in first.dropped] == [TAKEN_OUT]
    assert OwnText("Call her.") in second.page.sections[0].lines
    assert PageClaim("Lea is in *Basel*.", (), NOW.date(), is_edited=True) in second.page.claims
    assert tea.id not in second.page.items


@given(st.lists(st.sets(st.integers(0, 20)), min_size=1, max_size=6))
def test_nothing_is_lost_silently_however_items_come_and_go(rounds: list[set[int]]) -> None:
    page = Page("Lea")
    for living in rounds:
        result = consolidate(page, [item(number) for number in living], now=NOW)
        told = {each.item for each in result.dropped}

        assert {*page.items, *(item(number).id for number in living)} <= {*result.page.items, *told}
        assert set(result.page.items) <= {item(number).id for number in living}
        page = parse(render(result.page))
