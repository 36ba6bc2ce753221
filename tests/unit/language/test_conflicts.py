"""Conflicts of two texts: what differs, and where, decides; the words themselves are not understood."""

from __future__ import annotations

from agent_memory.language.similarity import find_conflict
from tests.rows import check_rows

VALUES = [
    ("Use PostgreSQL for the ledger", "Use MySQL for the ledger"),
    ("The staging port is 8080", "The staging port is 8081."),
    ("The staging host is stage-3.internal.", "The staging host is stage-4.internal."),
    ("Owner: Ivo", "Owner: Mara"),
    ("timeout=30", "timeout=60"),
    ("The client retries 3 times.", "The client retries 5 times."),
    ("The service runs on Python 3.11.2.", "The service runs on Python 3.12."),
    ("Set the offset to 5.", "Set the offset to -5."),
    ("The budget is $500.", "The budget is €500."),
    ("My phone number is 555-0101.", "My phone number is 555-0102."),
    ("The cache expires after 30 seconds.", "The cache expires after 2 minutes."),
    ("The lead of the desk is Anna Maria Berg.", "The lead of the desk is Jo."),
    ("Deploy with `blue-green`.", "Deploy with `rolling`."),
    ("Timeout: 30 seconds", "Timeout: 60 seconds"),
    ("Retries 3", "Retries 5"),
    ("The support address is help@acme.org.", "The support address is team@acme.org."),
    ("The settings are in app.toml.", "The settings are in conf/site.toml."),
    ("The tracking issue is #88.", "The tracking issue is #91."),
    ("Ask Ana for the keys.", "Ask Ben for the keys."),
    ("# Ledger\n\n- Use PostgreSQL here.", "# Ledger\n\n- Use MySQL here."),
]
NEGATIONS = [
    ("Production deployment is allowed.", "Production deployment is not allowed."),
    ("I can eat peanuts.", "I can’t eat peanuts."),  # noqa: RUF001
    ("Use tabs.", "Don't use tabs."),
    ("Kim eats meat.", "Kim does not eat meat."),
    ("Max works at Initech.", "Max no longer works at Initech."),
    ("用户喜欢咖啡。", "用户不喜欢咖啡。"),
    ("Der Export ist erlaubt.", "Der Export ist nicht erlaubt."),
]
NO_CONFLICTS = [
    ("billing-api listens on 8080", "billing-web listens on 8081"),
    ("Service billing-api listens on port 8080.", "Service billing-web listens on port 8081."),
    ("In 2023 revenue was 4 million", "In 2024 revenue was 6 million"),
    ("In 2023 revenue was 4 million", "In 2024 revenue was 4 million"),
    ("The Python client retries 3 times", "The Go client retries 3 times"),
    ("The Python client retries 3 times.", "The Go client retries 5 times."),
    ("PostgreSQL is slow", "MySQL is slow"),
    ("Room Fjord seats 8 people.", "Room Gletscher seats 12 people."),
    ("Room Fjord seats 8 people.", "Room Gletscher seats 8 people."),
    ("Service billing-api listens on port 8080.", "Service billing-web listens on port 8080."),
    ("Rate limit for GET /users is 100 calls.", "Rate limit for POST /users is 100 calls."),
    ("Ticket 12 is done.", "Ticket 13 is done."),
    ("Ticket ABC-12 is done.", "Ticket ABC-13 is done."),
    ("Module foo_bar has tests.", "Module foo_baz has tests."),
    ("Function `load` is slow.", "Function `save` is slow."),
    ("The pull request #88 was merged.", "The pull request #89 was merged."),
    ("The invoice 4711 was paid.", "The invoice 4712 was paid."),
    ("Release 2.3.0 shipped on a Friday.", "Release 2.4.0 shipped on a Friday."),
    ("Good day. Build #512 failed.", "Good day. Build #513 failed."),
    ("My phone number is 555-0101.", "Jo's phone number is 555-0102."),
    ("My phone number is 555-0101.", "Jo's phone number is 555-0101."),
    ("My birthday is 3 May.", "My mother's birthday is 3 May."),
    ("My birthday is 3 May.", "My mother's birthday is 9 June."),
    ("Note that Ana's desk is upstairs.", "Note that Ben's desk is upstairs."),
    ("The deadline is October 15th.", "The deadline is October 16th."),
    ("The release is on 3 March.", "The release is on 9 March."),
    ("The release is on 2026-03-03.", "The release is on 2026-03-09."),
    ("The release is on Monday.", "The release is on Friday."),
    ("The backup runs at 2:30.", "The backup runs at 4:00."),
    ("The backup runs at 2 pm.", "The backup runs at 4 pm."),
    ("Ada came in 2nd.", "Ada came in 3rd."),
    ("Clients MUST retry.", "Clients SHOULD retry."),
    ("The daily backup keeps 14 copies.", "The daily backup is verified by Nora."),
    ("The daily backup keeps 14 copies.", "The daily backup was Nora's idea."),
    ("The crew has 3 cooks.", "The crew has Nora."),
    ("The office is where Beatriz lives.", "The office is where Lars works."),
    ("What is the port of Redis?", "What is the port of Nginx?"),
    ("Is the export allowed?", "Is the export not allowed?"),
    ("The lamp is on.", "The lamp is off."),
    ("The user likes green tea", "The user likes black tea in the morning"),
    ("Rating 👍", "Rating 👎"),
    ("Use tabs, not spaces.", "Use spaces, not tabs."),
    ("Yesterday I met Bo.", "Yesterday Jo met Bo."),
    ("It was slow. Redis helped.", "It was slow. Nginx helped."),
    ("Notes:\n- Redis is slow", "Notes:\n- Nginx is slow"),
    ("Use PostgreSQL for the ledger", "use postgresql for the ledger!"),
    ("The port is 8080.", "The port is 8080 on weekdays."),
    ("I live in Hamburg.", "I moved from Hamburg to Kiel."),
    ("", "Not."),
]


@check_rows(("older", "newer"), VALUES)
def test_find_conflict_one_value_differs_value(older: str, newer: str) -> None:
    for pair in ((newer, older), (older, newer)):
        conflict = find_conflict(*pair)
        assert conflict is not None, pair
        assert (conflict.kind, conflict.hint) == ("value", "replace")


@check_rows(("older", "newer"), NEGATIONS)
def test_find_conflict_one_text_negated_denial(older: str, newer: str) -> None:
    for pair in ((newer, older), (older, newer)):
        conflict = find_conflict(*pair)
        assert conflict is not None, pair
        assert (conflict.kind, conflict.hint) == ("denial", "conflict")


@check_rows(("older", "newer"), NO_CONFLICTS)
def test_find_conflict_other_difference_none(older: str, newer: str) -> None:
    assert find_conflict(newer, older) is None
    assert find_conflict(older, newer) is None


def test_find_conflict_long_texts_shortened_evidence() -> None:
    rest = " and the rest is as it was" * 20
    conflict = find_conflict(f"The staging port is 8081{rest}", f"The staging port is 8080{rest}")
    assert conflict is not None
    assert conflict.evidence.startswith("now: The staging port is 8081 and")
    assert len(conflict.evidence) < 400


@check_rows(
    ("newer", "older"),
    [
        ("Use Redis for the queue.", "Use Mongo for the queue."),
        ("Deploys do not run at night.", "Deploys run at night."),
    ],
)
def test_find_conflict_late_difference_is_in_evidence(newer: str, older: str) -> None:
    lead = "The cluster in Bern has a rule about many things.\n" * 20
    conflict = find_conflict(lead + newer, lead + older)
    assert conflict is not None
    shown_newer, _, shown_older = conflict.evidence.partition(" / before: ")
    assert newer in shown_newer
    assert older in shown_older
    assert len(conflict.evidence) < 400
