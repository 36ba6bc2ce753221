"""`--not-secret`: a guessed secret that a person says is none is stored as it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.cli import edit
from agent_memory.redaction import SecretRedactor, redactor
from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.cli.runtime import CommandContext
    from tests.unit.cli.conftest import Run

GUESS = "The lock opens with Zx81!qqTw at night."
KEY = "AKIA" + "IOSFODNN7EXAMPLA"


@pytest.fixture(autouse=True)
def no_exemptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redactor, "_exempt_hashes", set())


def test_removed_guess_is_kept_when_the_command_is_repeated_with_not_secret(cli: Run) -> None:
    assert "repeat the command with --not-secret" in cli("store", GUESS).stderr
    memory_id = document(cli("store", "--not-secret", GUESS, "--json"))["memory_id"]
    assert document(cli("show", memory_id, "--json"))["content"] == GUESS
    assert not document(cli("update", memory_id, "--content", f"{GUESS} Still.", "--json"))["redacted"]
    assert document(cli("show", memory_id, "--json"))["content"] == f"{GUESS} Still."


def test_known_form_is_removed_despite_not_secret(cli: Run, root: Path) -> None:
    told = cli("store", "--not-secret", f"The build server in Lisbon uses {KEY} for uploads.")
    assert "aws-key" in told.stderr
    assert "--not-secret" not in told.stderr
    assert not (root / "not_secrets.txt").exists()


def test_exemption_holds_in_the_next_process_and_for_that_text_alone(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("store", "--not-secret", GUESS)
    monkeypatch.setattr(redactor, "_exempt_hashes", set())  # as in a new process
    assert GUESS in cli("list").stdout
    cli("store", "--tag", "x", "Also: Zx81!qqTw opens the shed. It opens with Zx81!qqTx as well.")
    assert "Zx81!qqTx" not in cli("list").stdout
    assert SecretRedactor().redact(GUESS).text == GUESS


def test_one_key_at_a_terminal_keeps_the_text(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    questions: list[str] = []

    def press(_run: CommandContext, question: str) -> str:
        questions.append(question)
        return "n"

    monkeypatch.setattr(edit, "is_terminal", lambda: True)
    monkeypatch.setattr(edit, "read_key", press)
    assert "has the text as you wrote it" in cli("store", GUESS).stdout
    assert "Zx81!qqTw" in questions[0]
    assert GUESS in cli("list").stdout
