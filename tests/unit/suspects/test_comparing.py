"""Which two memories are suspect together, and which are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.suspects import NEAR, Suspicion, compare, subjects_of
from agent_memory.suspects.statements import statements_of
from tests.support import memory_of


def compared(newer: str, older: str) -> Suspicion | None:
    return compare(memory_of(newer), memory_of(older))


@pytest.mark.parametrize(
    ("older", "newer", "kind"),
    [
        ("The daily backup runs at 2:30.", "The daily backup runs at 4:00.", "value"),
        ("Uploads are limited to 20 MB.", "The upload limit is 45 MB.", "value"),
        ("The standup is at 9:15.", "Standup is at 10:45 on account of the time zones.", "value"),
        ("Outgoing webhooks time out after 30 seconds.", "Webhooks now time out after 5 s.", "value"),
        ("retry_limit = 3", "retry_limit = 5", "value"),
        ("The build fails below 70 % coverage.", "The build fails below 85 % coverage.", "value"),
        ("The ledger service runs on Node 18.", "The ledger service runs on Node 22.", "value"),
        ("Never squash commits on main.", "Commits on main are to be squashed.", "denial"),
        ("Deploy on Fridays after lunch.", "Do not deploy on Fridays.", "denial"),
        ("The importer drops empty rows.", "The importer no longer drops empty rows.", "change"),
        ("Crash reports go to Bugsnag.", "Bugsnag was replaced by Rollbar.", "change"),
        ("Chat happens on Mattermost.", "We moved from Mattermost to Zulip.", "change"),
        ("My favourite editor is Helix.", "My favourite editor is Zed.", "other"),
        ("I prefer dark mode.", "I prefer light mode in the terminal.", "other"),
        ("Olga lives in Porto.", "Olga lives in Turin.", "other"),
        ("The owner of the billing desk is Ivo.", "The owner of the billing desk is Nora.", "other"),
        ("Lena wants reviews in Dutch.", "Lena now wants reviews in English.", "other"),
        ("The vault locks at 10 pm.", "The vault locks at 21:30.", "value"),
        ("src/pool.py opens at most 10 sockets.", "src/pool.py opens up to 40 sockets.", "value"),
        ("My physician is Dr. Vane.", "My physician is Dr. Oduya now.", "other"),
        ("Spare keys lie in the drawer.", "Spare keys lie beside the stove.", "other"),
    ],
)
def test_statements_that_give_one_matter_differently_are_suspect(older: str, newer: str, kind: str) -> None:
    found = compared(newer, older)
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The daily backup runs at 2:30.", "The daily backup runs at 02:30."),
        ("The vault locks at 10 pm.", "The vault locks at 22:00."),
        ("The vault locks at 12am.", "The vault locks at 0:00."),
        ("Webhooks time out after 30 seconds.", "Webhooks time out after 30 s."),
        ("Webhooks time out after 90 seconds.", "Webhooks time out after 1.5 minutes."),
        ("Uploads are limited to 2 GB.", "Uploads are limited to 2048 MB."),
        ("Uploads are limited to 2 GB.", "Uploads are limited to 2000 MB."),
        ("The quota is five tickets.", "The quota is 5 tickets."),
        ("The importer must drop empty rows.", "The importer should drop empty rows."),
        ("Olga lives in Porto and works from home.", "Olga lives in Porto."),
        ("The archive keeps nine copies.", "The archive has nine copies."),
    ],
)
def test_a_restatement_is_not_suspect(older: str, newer: str) -> None:
    assert compared(newer, older) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The staging database is on PostgreSQL 14.", "The production database is on PostgreSQL 16."),
        ("north gate sensor drops frames", "south gate sensor never drops frames"),
        ("Error K1200 means that the badge has expired.", "Error K1300 means that the reader is offline."),
        ("Olga lives in Porto.", "Ivo lives in Turin."),
        ("Olga is on vacation in July.", "Olga maintains the billing service."),
        ("Olga prefers tabs.", "Olga prefers small pull requests."),
        ("The ledger service is written in Go.", "The ledger service restarts every night."),
        ("Money is stored as integer cents.", "Feature flags start with LX_."),
        ("The parser reads at most 40 files.", "The parser waits 40 seconds."),
        ("I like tea.", "I like jazz."),
        ("The quota for parcels is 40 kg.", "The quota for letters is 2 kg."),
        ("My physician is Dr. Vane.", "My plumber is Dr. Oduya."),
        ("settings.ini sets depth: 4", "settings.ini sets width: 9"),
        ("Checks run with tox.", "Checks run in parallel."),
        ("Our depot is in Gent.", "Our depot has a crane."),
        ("src/pool.py opens at most 10 sockets.", "src/pool.py has no tests."),
        ("The desk in Rostock takes parcels on Saturdays.", "The desk in Kiel takes no parcels on Saturdays."),
    ],
)
def test_what_is_about_other_things_or_other_matters_is_not_suspect(older: str, newer: str) -> None:
    assert compared(newer, older) is None


@pytest.mark.parametrize(
    ("older", "newer", "is_suspect"),
    [
        ("Das Lager in Rostock nimmt samstags Ware an.", "Das Lager in Rostock nimmt samstags keine Ware an.", True),
        ("Das Lager in Rostock nimmt samstags Ware an.", "Das Lager in Kiel nimmt samstags keine Ware an.", False),
        ("Sicherungen werden 35 Tage aufbewahrt.", "Sicherungen werden 90 Tage aufbewahrt.", True),
        ("La réunion est à 9:30.", "La réunion est à 10:15.", True),
        ("数据库在柏林", "服务器在法兰克福", False),
    ],
)
def test_other_languages_are_compared_by_structure(older: str, newer: str, *, is_suspect: bool) -> None:
    assert (compared(newer, older) is not None) == is_suspect


@pytest.mark.parametrize(
    "newer",
    [
        "Until the spring release the ledger service never kept drafts.",
        "In 2021 the ledger service kept no drafts.",
        "The ledger service used to keep no drafts.",
        "Up to 12 March the ledger service kept no drafts.",
        "Up to 2021 the ledger service kept no drafts.",
    ],
)
def test_what_was_so_in_the_past_contradicts_nothing_of_today(newer: str) -> None:
    assert compared(newer, "The ledger service keeps drafts.") is None


def test_what_lasts_until_a_day_is_not_past() -> None:
    assert compared("The ledger service must not keep drafts until the audit.", "The ledger service keeps drafts.")


def test_notes_with_titles_are_compared_by_what_they_name_in_full() -> None:
    older = "copper lane freight scanner skips damp labels\nFound while reading the log of the freight scanner."
    other = "copper lane freight scanner does not skip damp labels\nChecked twice."
    sibling = "maple yard freight scanner does not skip damp labels\nChecked twice."
    assert compared(other, older) is not None
    assert compared(sibling, older) is None


def test_a_fact_in_a_list_has_its_subject_in_the_title() -> None:
    older = "copper lane freight scanner\n- owner: dock team\n- scan interval: 20 ms"
    assert compared("copper lane freight scanner\n- scan interval: 45 ms", older) is not None
    assert compared("copper lane freight scanner\n- scan interval: 20 ms", older) is None
    assert compared("maple yard freight scanner\n- scan interval: 45 ms", older) is None


def test_a_label_has_one_value_below_one_title() -> None:
    older = "# Night watch\n- Region: north-west-1\n- Guard: Karin"
    assert compared("# Night watch\n- Region: north-east-2\n- Guard: Karin", older) is not None
    assert compared("# Night watch\n- Region: north-west-1\n- Guard: Jonas", older) is not None
    assert compared("# Night watch\n- Region: north-west-1\n- Guard: Karin\n- Key: blue", older) is None
    assert compared("# Day watch\n- Region: north-east-2\n- Guard: Jonas", older) is None
    assert compared("# Night watch\n- Guard: Jonas", "# Night watch\n- Guard: Karin\n- Guard: Ivo") is None


def test_sentences_that_both_notes_have_say_nothing() -> None:
    fixed = "Recorded by the platform group, which reviews its notes twice a year and never without a second reader."
    older, newer = "tide gate controller sheds load at noon", "tide gate controller keeps its logs for nine weeks"
    assert compared(f"{newer}\n{fixed}", f"{older}\n{fixed}") is None


def test_turns_of_a_talk_and_questions_are_no_statements() -> None:
    assert compared("Ann: Wow, Bea, I do not like the tide pool!", "Bea: I like the tide pool, Ann.") is None
    assert compared("Should the tide pool be closed at 9:00?", "The tide pool is closed at 8:00.") is None
    assert compared("Deploy day: Tuesday", "Deploy day: Thursday") is not None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Olga helps at a dog shelter once a month.", "Olga is happy to help Ivo when he moves his shelter."),
        ("Ivo finds joy in dancing with friends.", "Ivo left the bank to turn his joy of dancing into a business."),
        ("Olga encourages Ivo to keep his studio.", "Ivo is determined not to let Olga down."),
    ],
)
def test_much_can_be_said_of_a_person(older: str, newer: str) -> None:
    assert compared(newer, older) is None


def test_lists_of_files_are_no_statements() -> None:
    assert compared("Use the new lexer.\nFiles: src/lexer.py, src/io.py", "Cache tokens.\nFiles: src/lexer.py") is None


def test_an_update_is_a_replacement_and_a_contradiction_is_a_conflict() -> None:
    update = compared("Uploads are limited to 45 MB.", "Uploads are limited to 20 MB.")
    denial = compared("Uploads are not limited by size.", "Uploads are limited by size.")
    assert (update and update.hint, denial and denial.hint) == ("replace", "conflict")


def test_the_evidence_shows_both_statements_and_the_matter() -> None:
    found = compared("The upload limit is 45 MB.", "Minutes of May.\nThe upload limit is 20 MB.")
    assert found is not None
    assert "45 MB" in found.evidence
    assert "20 MB" in found.evidence
    assert len(compared("The upload limit is 9 MB" + " or so" * 99, "The upload limit is 8 MB").evidence) < 400  # type: ignore[union-attr]


def test_near_facts_need_one_word_in_common() -> None:
    older, newer = memory_of("Payments are handled by Stripe."), memory_of("Adyen processes our payments now.")
    assert compare(newer, older) is None
    assert compare(newer, older, NEAR) is not None


def test_facts_need_not_be_so_near_where_the_newer_says_that_something_has_changed() -> None:
    older = memory_of("Visitors leave the vault after 40 minutes.")
    newer = memory_of("The length of a vault tour was cut to 25 minutes.")
    assert compare(newer, older, 0.5) is None
    assert compare(newer, older, 0.6) is not None
    assert compare(memory_of("The length of a vault tour is 25 minutes."), older, 0.6) is None
    assert compare(memory_of("A tour was moved to the garden."), older, 0.6) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Room b is locked at night.", "Room d is locked at night."),
        ("Server alpha is in the rack of Rostock.", "Server beta is in the rack of Rostock."),
        ("The gate north is closed on Mondays.", "The gate south is closed on Mondays."),
    ],
)
def test_things_of_a_kind_of_which_the_same_is_said_are_no_pair(older: str, newer: str) -> None:
    assert compare(memory_of(newer), memory_of(older)) is None
    assert compare(memory_of(newer), memory_of(older), NEAR) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Payments are handled by Stripe.", "Stripe handles payments."),
        ("Payments are handled by Stripe.", "Until 2021 payments went through Adyen."),
        ("The staging database is on port 5432.", "The production database is on port 5433."),
        ("Olga likes tea.", "Ivo drinks coffee."),
    ],
)
def test_near_facts_are_cleared_as_others_are(older: str, newer: str) -> None:
    assert compare(memory_of(newer), memory_of(older), NEAR) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Marta works at Siemens.", "Marta started at Bosch."),
        ("The logo is green.", "The logo is orange."),
        ("The bikes are kept in the cellar.", "The bikes are in the yard."),
        ("Nils is the product owner.", "The product owner is Sara."),
    ],
)
def test_two_values_in_one_frame_are_suspect(older: str, newer: str) -> None:
    assert compared(newer, older) is not None


def test_subjects_are_what_to_look_others_up_by() -> None:
    subjects = subjects_of(memory_of("The tide gate controller of Norderney sheds load.\nSee src/gate.py."))
    assert "tide gate control" in subjects
    assert "norderney" in subjects
    assert subjects_of(memory_of("Never.")) == ()


@given(st.text(min_size=1).filter(lambda text: bool(text.strip())), st.sampled_from(["Olga lives in Porto.", "x = 1"]))
def test_any_text_can_be_compared_and_is_never_suspect_beside_itself(text: str, other: str) -> None:
    usable = "".join(char for char in text if char.isprintable()).strip() or "x"
    assert compared(usable, usable) is None
    for found in (compared(usable, other), compared(other, usable)):
        assert found is None or found.evidence


def test_of_a_long_text_only_so_much_is_read() -> None:
    """Comparing takes time by the square of what is read: a text that is stored must not hold up all that follow."""
    for unit in ("cat ", "Ann likes tea and ", "a, ", "x = 3; "):
        for statement in statements_of((unit * 10_000)[:10_000]):
            assert len(statement.text) <= 400
            assert max(map(len, statement.runs), default=0) <= 16


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Room 3 holds 6 chairs.", "Room 4 holds 7 chairs."),
        ("The parser of service 19702 avoids gzip.", "The parser of service 18423 avoids snapshots."),
        ("In sprint 12 the team fixed 9 bugs.", "In sprint 13 the team fixed 4 bugs."),
        ("The owner of ticket #41 is Mara.", "The owner of ticket #42 is Ivo."),
        ("The backup of the orders table runs at 2:00.", "The backup of the invoices table runs at 4:00."),
        ("The VPN in the lab uses port 443.", "The VPN in Rotterdam uses port 1194."),
    ],
)
def test_things_of_a_kind_with_other_numbers_or_owners_are_no_pair(older: str, newer: str) -> None:
    assert compared(newer, older) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The design review is in room 3.", "The design review is in room 5."),
        ("Room 3 holds 6 chairs.", "Room 3 holds 9 chairs."),
        ("The staging cluster has 3 nodes.", "The staging cluster has 5 nodes."),
        ("The shop is on PostgreSQL 14.", "The shop is on PostgreSQL 16."),
        ("The owner of the billing service is Mara.", "The owner of billing is Ivo."),
    ],
)
def test_another_number_of_what_is_said_of_a_thing_is_a_pair(older: str, newer: str) -> None:
    assert compared(newer, older) is not None
