"""When a text is a talk that somebody wrote down, and who says what in it."""

from __future__ import annotations

from datetime import UTC, datetime

from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.intake.file_formats import read_transcript
from tests.rows import check_rows

ADA = ReceivedTurn("I moved from Berlin to Lisbon last month.", "person", "Ada")
BO = ReceivedTurn("Who owns the billing service now?", "person", "Bo")

FORMS = {
    "plain": "Ada: {ada}\nBo: {bo}\nAda: {ada}\nBo: {bo}\n",
    "blank lines between": "Ada: {ada}\n\nBo: {bo}\n\nAda: {ada}\n\nBo: {bo}",
    "bold": "**Ada:** {ada}\n**Bo:** {bo}\n**Ada:** {ada}\n**Bo:** {bo}",
    "clock": "[10:02] Ada: {ada}\n[10:03] Bo: {bo}\n[10:04] Ada: {ada}\n[10:09] Bo: {bo}",
    "nick": "<Ada> {ada}\n<Bo> {bo}\n<Ada> {ada}\n<Bo> {bo}",
    "list": "- Ada: {ada}\n- Bo: {bo}\n- Ada: {ada}\n- Bo: {bo}",
}

NO_TALK = {
    "prose": "# Tea\n\nWe drink green tea.\nNote: it must not boil, or else it gets bitter.\n",
    "changes": "# Changes\n\nAdded: a search by words and by meaning.\nFixed: the lock was not let go.\n"
    "Added: a search by words and by meaning.\nFixed: the lock was not let go.\n",
    "kinds in blocks": "".join(f"Kitchen: order {n} more cups and saucers, please.\n" for n in range(4))
    + "".join(f"Office: order {n} more pens and some paper, please.\n" for n in range(4)),
    "records": "".join(f"Street: {n} Elm\nTown: Ely\n" for n in range(4)),
    "one voice": "Ada: I moved to Lisbon in May.\n" * 5,
    "too short": "Ada: I moved to Lisbon in May.\nBo: Since when do you live there?\n",
    "an essay that quotes": "Ada: I moved to Lisbon in May.\nBo: Since when do you live there?\n" * 2
    + "She had packed at night, and nobody knew of it but the neighbour's dog.\n" * 8,
    "objects": '{"speaker": "Ada", "text": "I moved to Lisbon in May."}\n' * 4,
    "nothing": "\n\n",
}


@check_rows("form", FORMS.values(), ids=FORMS)
def test_a_talk_is_known_in_each_form_in_which_people_write_one(form: str) -> None:
    talk = read_transcript(form.format(ada=ADA.text, bo=BO.text), "standup.md")
    assert talk is not None
    assert list(talk.turns) == [ADA, BO, ADA, BO]


@check_rows("text", NO_TALK.values(), ids=NO_TALK)
def test_what_only_looks_like_one_is_none(text: str) -> None:
    assert read_transcript(text, "notes.md") is None


def test_read_transcript_with_lower_case_names_reads_turns() -> None:
    for form in FORMS.values():
        text = form.format(ada=ADA.text, bo=BO.text)
        talk, lower = read_transcript(text, "standup.md"), read_transcript(text.lower(), "standup.md")
        assert talk is not None
        assert lower is not None
        assert [turn.speaker for turn in lower.turns] == [turn.speaker.lower() for turn in talk.turns]


def test_a_heading_before_it_is_its_title_and_lines_without_a_name_go_on_with_what_was_said() -> None:
    text = (
        "# Standup\nHeld on Monday\n\nUser: I moved from Berlin\n  to Lisbon last month.\n"
        "Assistant: And what came of the billing service?\nUser: Carla owns it since the first of May.\n"
        "Assistant: Who owned the billing service then?\n"
    )
    talk = read_transcript(text, "standup.md")
    assert talk is not None
    assert talk.title == "Standup"
    assert list(talk.turns) == [
        ReceivedTurn("I moved from Berlin\nto Lisbon last month.", "unknown"),
        ReceivedTurn("And what came of the billing service?", "unknown"),
        ReceivedTurn("Carla owns it since the first of May.", "unknown"),
        ReceivedTurn("Who owned the billing service then?", "unknown"),
    ]


def test_a_talk_that_has_grown_is_the_same_conversation() -> None:
    text = FORMS["plain"].format(ada=ADA.text, bo=BO.text)
    first, later = (
        read_transcript(text, "standup.md"),
        read_transcript(f"{text}Ada: Carla does, since May.\n", "standup.md"),
    )
    assert first is not None
    assert later is not None
    assert (first.key, first.title) == (later.key, "standup.md")


@check_rows(
    ("heading", "name", "day"),
    [
        ("# Standup 2026-03-02\n", "2025-01-01.md", datetime(2026, 3, 2, tzinfo=UTC)),
        ("", "standup-2026-03-02.md", datetime(2026, 3, 2, tzinfo=UTC)),
        ("# Release 2026-99-02\n", "standup.md", None),
    ],
)
def test_a_day_in_the_heading_or_in_the_name_of_the_file_is_the_day_of_the_talk(
    heading: str, name: str, day: datetime | None
) -> None:
    talk = read_transcript(heading + FORMS["plain"].format(ada=ADA.text, bo=BO.text), name)
    assert talk is not None
    own = day and day.replace(tzinfo=None)  # in the zone of the settings
    assert (talk.said_at, {turn.said_at for turn in talk.turns}) == (own, {own})


def test_a_heading_between_turns_is_said_by_nobody_and_may_tell_the_day() -> None:
    talk = "# 2026-03-01\nAda: {ada}\nBo: {bo}\n\n## Later\nAda: {ada}\n\n## 2026-03-02\nBo: {bo}\n"
    found = read_transcript(talk.format(ada=ADA.text, bo=BO.text), "talk.md")
    assert found is not None
    assert [each.text for each in found.turns] == [ADA.text, BO.text, ADA.text, BO.text]
    assert [each.said_at.day for each in found.turns if each.said_at is not None] == [1, 1, 1, 2]
