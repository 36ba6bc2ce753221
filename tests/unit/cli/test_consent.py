"""`consent`, and what `status` and `doctor` say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder of its own."""
    folder = tmp_path / "kestrel"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_consent_without_sources_shows_the_default(cli: Run, root: Path) -> None:
    assert document(cli("consent", "--json")) == {
        "agent_id": None, "enabled": True, "mode": "autonomous", "decided_by": None, "sources": [], "warnings": [],
    }  # fmt: skip
    assert not root.exists()


@pytest.mark.parametrize(
    ("word", "enabled", "mode", "line"),
    [("off", False, "autonomous", 1), ("ask", True, "ask", 2), ("manual", True, "manual", 2)],
)
def test_consent_is_written_for_one_agent(bob: Run, root: Path, word: str, enabled: bool, mode: str, line: int) -> None:
    said = document(bob("consent", word, "-a", "bob", "--json"))
    path = root / "bob" / "consent.yaml"
    assert (said["enabled"], said["mode"], said["decided_by"]) == (enabled, mode, f"{path}:{line}")
    assert path.stat().st_mode & 0o777 == 0o600
    assert document(bob("status", "--json"))["consent"]["decided_by"] == f"{path}:{line}"
    assert f"{path}:{line}" in "".join(bob("status").stdout.split())
    assert not (root / "consent.yaml").exists(), "others are as they were"
    assert document(bob("consent", "autonomous", "-a", "bob", "--json"))["mode"] == "autonomous"
    assert document(bob("doctor", "--json"))["healthy"]


@pytest.mark.parametrize("mode", ["manual", "ask"])
def test_consent_on_after_off_restores_mode(bob: Run, mode: str) -> None:
    for word in (mode, "off", "off", "on", "on"):
        said = bob("consent", word)
    assert f"The mode is still {mode}. Run `agent-memory consent autonomous`" in said.stderr
    assert document(bob("consent", "--json"))["mode"] == mode
    bob("consent", "autonomous")
    assert "mode autonomous" in (shown := bob("consent").stdout)
    assert "default" not in shown


def test_consent_without_agent_shows_only_agent(bob: Run) -> None:
    bob("consent", "ask", "-a", "bob")
    said = document(bob("consent", "--json"))
    assert (said["agent_id"], said["mode"]) == ("bob", "ask")
    assert said["decided_by"] == document(bob("status", "--json"))["consent"]["decided_by"]


def test_consent_off_says_it_holds_for_sessions(bob: Run) -> None:
    said = " ".join(bob("consent", "off").stdout.split())
    assert "Sessions store nothing and show no memory. Commands that you type still work." in said


def test_consent_of_all_agents_overrides_looser_one(bob: Run) -> None:
    bob("consent", "off")
    said = bob("consent", "on", "-a", "bob")
    assert "Memory stays off" in said.stderr
    assert document(bob("list", "--json"))["total"] > 0, "commands act for a person"


def test_consent_keeps_the_modes_of_categories(bob: Run, root: Path) -> None:
    (root / "consent.yaml").write_text("categories: {note: manual}\n")
    bob("consent", "ask")
    assert "note: manual" in (root / "consent.yaml").read_text()


def test_consent_of_an_unknown_agent_is_refused(bob: Run, root: Path) -> None:
    bob("consent", "off", "-a", "eve", code=1)
    assert not (root / "eve").exists()


def test_consent_replaces_a_file_that_is_not_yaml(bob: Run, root: Path) -> None:
    (root / "consent.yaml").write_text("mode: [")
    said = document(bob("consent", "--json"))
    assert not said["enabled"]
    assert "line 1" in said["warnings"][0] or "line 2" in said["warnings"][0]
    assert "consent_unreadable" in bob("doctor", "--json", code=1).stdout
    assert document(bob("consent", "on", "--json"))["warnings"] == []


def test_consent_of_a_module_is_read_from_the_settings(bob: Run, home: Path) -> None:
    (home / ".amplifier").mkdir(exist_ok=True)
    (home / ".amplifier" / "settings.yaml").write_text(
        "overrides:\n  hooks-memory-capture:\n    config:\n      mode: ask\n"
        "session:\n  capabilities:\n    memory:\n      enabled: false\n"
    )
    said = document(bob("consent", "--json"))
    assert (said["enabled"], said["mode"]) == (True, "ask")
    assert said["decided_by"] == "~/.amplifier/settings.yaml:4"
    assert said["warnings"][0].startswith("~/.amplifier/settings.yaml:7: session.capabilities.memory has no effect")
    assert "settings_without_effect" in bob("doctor", "--json", code=1).stdout


def test_doctor_earlier_setting_names_the_present_one(bob: Run, home: Path) -> None:
    (home / ".amplifier").mkdir(exist_ok=True)
    (home / ".amplifier" / "settings.yaml").write_text(
        "overrides:\n  hooks-memory-capture:\n    config:\n      low_trust_tools: [web]\n      cache_ttl_seconds: 5\n"
        "  another:\n    config:\n      low_trust_tools: [web]\n"
    )
    findings = document(bob("doctor", "--json"))["findings"]
    sentences = [finding["sentence"] for finding in findings if finding["code"] == "settings_earlier"]
    assert sentences[0] == "~/.amplifier/settings.yaml:4: `low_trust_tools` is called `untrusted_tools` now."
    assert sentences[1].startswith("~/.amplifier/settings.yaml:5: `cache_ttl_seconds` has no effect: ")
    assert len(sentences) == 2


def test_consent_of_the_project_is_shown_where_one_works(bob: Run, workplace: Path) -> None:
    (workplace / ".agent-memory.yaml").write_text("retain_days: 90\nmode: manual\n")
    said = document(bob("consent", "-a", "bob", "--json"))
    assert (said["mode"], said["decided_by"]) == ("manual", f"{workplace / '.agent-memory.yaml'}:2")


def test_unknown_project_key_ends_with_single_question_mark(cli: Run, workplace: Path) -> None:
    (workplace / ".git").mkdir()
    (workplace / ".agent-memory.yaml").write_text("moed: ask\n")
    (warning,) = document(cli("consent", "--json"))["warnings"]
    assert "did you mean 'mode'? Nothing is stored" in warning
