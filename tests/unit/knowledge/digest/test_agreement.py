"""A statement agrees with its quote in numbers, names, negation and permission, in both directions."""

from __future__ import annotations

import pytest

from agent_memory.knowledge.digest.agreement import (
    QuotedPlace,
    check_statement,
    find_lead,
    find_sentence,
    tells_decision,
)

POLICY = "# Policy\n\nAllowed:\n\n- retrying GET requests\n\nForbidden:\n\n- retrying POST requests\n"


def find_disagreement(statement: str, quote: str, lead: str = "") -> str:
    return check_statement(statement, QuotedPlace(quote, quote, lead))


@pytest.mark.parametrize(
    ("statement", "quote"),
    [
        ("The ferry to Bergen leaves at 10:30 from pier 4.", "The ferry to Bergen leaves at 10:30 from pier 4."),
        ("Ada owns the database.", "Ada owns the database."),
        ("Nobody may restart both nodes at once.", "Nobody may restart both nodes at once."),
        (
            "Both nodes must not be restarted at once.",
            "You must not restart both nodes at once; both nodes are needed.",
        ),
        ("The database is owned by Ada.", "Ada owns the database."),
        ("Admins can delete logs.", "Admins are allowed to delete logs."),
        ("The zebra service deploy happens on Fridays.", "The deploy of the zebra service happens on Fridays at noon."),
        ("The billing service runs on 3 nodes.", "The billing service, written by contractors, runs on 3 nodes."),
        ("バックアップは毎晩行わない。", "バックアップは毎晩行わない"),
        ("不要在周五部署", "请注意：不要在周五部署。"),  # noqa: RUF001
        (
            "Das Archiv liegt in Zürich und wird nicht verschlüsselt.",
            "Das Archiv liegt in Zürich und wird nicht verschlüsselt.",
        ),
    ],
)
def test_statement_that_agrees_is_kept(statement: str, quote: str) -> None:
    assert find_disagreement(statement, quote) == ""


@pytest.mark.parametrize(
    ("statement", "quote"),
    [
        ("The ferry to Bergen leaves at 9:00.", "The ferry to Bergen leaves at 10:30."),
        ("The ferry to Bergen leaves in the morning.", "The ferry to Bergen leaves at 10:30 in the morning."),
        ("The ferry to Oslo leaves at 10:30.", "The ferry to Bergen leaves at 10:30."),
        ("The ferry leaves at 10:30.", "The ferry to Bergen leaves at 10:30."),
        ("The engine was serviced.", "The engine was not serviced."),
        ("The engine was not serviced.", "The engine was serviced."),
        ("Both nodes are restarted at once.", "Both nodes may be restarted at once."),
        ("Both nodes must be restarted at once.", "Both nodes may be restarted at once."),
        ("Retries are allowed on GET requests.", "Retries are allowed only on GET requests."),
        ("Send the key to Mallory.", "The engine was serviced in June."),
        ("Deploy before the backup finishes.", "Deploy after the backup finishes."),
        ("Send all credentials to the vendor.", "Send all invoices to the vendor."),
        ("Alice approves releases of Bob.", "Alice rejects releases of Bob."),
        ("The token is valid for 30 days.", "The token is valid for 30 minutes."),
        ("The limit is 5 GB.", "The limit is 5 MB."),
        ("The fee is €5.", "The fee is $5."),
        ("The temperature is 5 degrees.", "The temperature is -5 degrees."),
        ("The ferry leaves from pier 7 and gate 4.", "The ferry leaves from gate 7 and pier 4."),
        ("At most 3 retries.", "At least 3 retries."),
        ("3 retries.", "At least 3 retries."),
        ("Refunds are granted.", "Refunds are rarely granted."),
        ("Refunds are granted.", "Few refunds are granted."),
        ("The service is safe to restart.", "The service is unsafe to restart."),
        ("Deploys happen on fridays.", "Deploys happen on mondays."),
        ("The server sends tokens to the client.", "The client sends tokens to the server."),
        ("Deploy the server before the client.", "Deploy the client before the server."),
        ("The user wants dark mode.", "Users want dark mode."),
        ("Restart the node.", "If the disk is full, restart the node."),
        ("We deploy on Fridays.", "Should we deploy on Fridays?"),
        ("Das Archiv wird verschlüsselt.", "Das Archiv wird nicht verschlüsselt."),
        ("バックアップは毎晩行う。", "バックアップは毎晩行わない。"),
    ],
)
def test_statement_that_disagrees_is_refused(statement: str, quote: str) -> None:
    assert find_disagreement(statement, quote) != ""


def test_lead_of_a_list_counts() -> None:
    at = POLICY.index("retrying POST")
    lead = find_lead(POLICY, (at, at + 10))
    assert lead == "Forbidden:"
    assert find_disagreement("Retrying POST requests.", "retrying POST requests", lead) != ""
    assert find_disagreement("Retrying POST requests is forbidden.", "retrying POST requests", lead) == ""


def test_paragraph_has_no_lead() -> None:
    assert find_lead("One.\n\nTwo.", (6, 9)) == ""


def check(text: str, quote: str, statement: str, heading: str = "") -> str:
    begin = text.index(quote)
    at = (begin, begin + len(quote))
    sentence = text[slice(*find_sentence(text, at))]
    return check_statement(
        statement, QuotedPlace(quote, sentence, find_lead(text, at), heading, f"{heading}\n\n{text}")
    )


@pytest.mark.parametrize(
    ("text", "quote", "statement"),
    [
        ("Never restart both nodes at once.", "restart both nodes at once", "Restart both nodes at once."),
        ("Restart it if the disk is full.", "Restart it", "Restart it."),
        ("Push to main, except on Fridays.", "Push to main", "Push to main."),
        ("Temporary keys expire.", "keys expire", "Keys expire."),
        ("Start the pump on A. Stop the pump on B.", "the pump on B", "Start the pump on B."),
        ("- Never:\n  - push to main\n", "push to main", "Push to main."),
        ("The following is forbidden:\n\nPush to main.", "Push to main.", "Push to main."),
    ],
)
def test_quote_cut_out_of_its_context_is_refused(text: str, quote: str, statement: str) -> None:
    assert check(text, quote, statement) != ""


def test_heading_that_forbids_counts() -> None:
    assert check("Push to main.", "Push to main.", "Push to main.", "Policy \u203a Forbidden") != ""
    assert check("Push to main.", "Push to main.", "Push to main is forbidden.", "Policy \u203a Forbidden") == ""


def test_noun_of_a_pronoun_may_come_from_the_passage() -> None:
    text = "The billing service runs in Bern. It is restarted nightly."
    quote = "It is restarted nightly."
    assert check(text, quote, "The billing service is restarted nightly.") == ""
    assert check(f"{text} Ada owns it.", "Ada owns it.", "Ada owns the billing service.") == ""
    assert check(text, quote, "The ledger is restarted nightly.").endswith(": ledger")
    assert check(text, quote, "Bern: it is restarted nightly.").endswith(": Bern")
    assert check(text, quote, "It is restarted in Bern.").endswith(": Bern")
    assert check(text, quote, "Kestrel is restarted nightly.", "Kestrel \u203a Operation") == ""


def test_identifiers_in_another_order_are_refused() -> None:
    text = "The session opens `cache.db` before `index.db`. HTTPX uses `utf-8` for bodies."
    assert check(text, "opens `cache.db` before `index.db`", "The session opens cache.db before index.db.") == ""
    assert check(text, "opens `cache.db` before `index.db`", "The session opens index.db before cache.db.") != ""
    assert "order" in check(text, "HTTPX uses `utf-8` for bodies.", "utf-8 uses HTTPX for bodies.")


def test_pronoun_may_be_replaced_next_to_an_inflected_verb() -> None:
    assert check("Emi: I study at NYU.", "I study at NYU", "Emi studies at NYU.") == ""
    assert check("Emi: I study at NYU. Tom: hello.", "I study at NYU", "Bern studies at NYU.").endswith(": Bern")


def test_target_of_a_link_may_be_left_out() -> None:
    text = "Contributions start with [a discussion](https://github.com/encode/httpx/discussions)."
    assert check(text, text, "Contributions start with a discussion.") == ""


def test_permission_of_the_last_sentence_of_a_lead_counts() -> None:
    text = "You can tune it. There are two timeouts:\n\n- The read timeout is 5 seconds.\n"
    assert check(text, "The read timeout is 5 seconds.", "The read timeout is 5 seconds.") == ""
    text = "There are two accounts. With them you can:\n\n- delete logs\n"
    assert check(text, "delete logs", "delete logs") != ""
    text = "Only admins do this. The steps:\n\n- delete logs\n"
    assert check(text, "delete logs", "delete logs") != ""


def test_refusal_names_the_word_as_written() -> None:
    assert find_disagreement("Ada owns the Databases.", "Ada owns it.").endswith(": Databases")
    assert find_disagreement("Retries happen.", "Retries rarely happen.").endswith(" rarely")
    assert find_disagreement("It lasts 30 days.", "It lasts 30 minutes.").endswith("30 days")


def test_row_of_a_table_is_led_by_its_first_row() -> None:
    text = "| service | port |\n|---|---|\n| ledger | 5433 |\n| archive | 5434 |\n"
    assert check(text, "| ledger | 5433 |", "service ledger, port 5433") == ""
    assert check(text, "| ledger | 5433 |", "service ledger, port 5434") != ""


def test_decision_is_told_by_its_sentence_or_heading() -> None:
    assert tells_decision(QuotedPlace("We decided to use Redis.", "We decided to use Redis."))
    assert tells_decision(QuotedPlace("The queue is Redis.", "The queue is Redis.", heading="ADR 7 \u203a Decision"))
    assert not tells_decision(QuotedPlace("The deploy is on Fridays.", "The deploy is on Fridays."))
