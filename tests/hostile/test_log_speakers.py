"""Ingested logs: no word of a page, a tool or another agent becomes the user's or the assistant's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.hostile.log_samples import EVIL, MINE, REFUSED, SAMPLES, TRANSCRIPTS, YOURS
from tests.in_process import build_cli

if TYPE_CHECKING:
    from pathlib import Path

    from tests.in_process import Run

TRUSTED = {"user", "the user", "assistant", "the assistant", "bob"}


@pytest.fixture
def cli(root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return `agent-memory` in this process, for an agent bob."""
    return build_cli(root, monkeypatch)


def read_said(cli: Run) -> list[tuple[str, str, str, str]]:
    """Return ID, speaker, trust and text of all that an agent was given, turns and items."""
    turns = json.loads(cli("episodes", "--all", "--json").stdout)["episodes"]
    items = json.loads(cli("list", "--items", "--limit", "100", "--json").stdout)["memories"]
    said = [(turn["id"], turn["speaker"], turn["trust"], turn["content"]) for turn in turns]
    return said + [(item["id"], item["metadata"]["speaker"], item["trust"], item["content"]) for item in items]


@pytest.mark.parametrize("name", SAMPLES)
def test_log_with_page_inside_keeps_each_speaker(cli: Run, tmp_path: Path, name: str) -> None:
    file_name, content = SAMPLES[name]
    (tmp_path / file_name).write_text(content)
    cli("ingest", "--yes", str(tmp_path / file_name))
    said = read_said(cli)
    assert [entry for entry in said if EVIL in entry[3] and (entry[1].casefold() in TRUSTED or entry[2] != "low")] == []
    assert {speaker for _, speaker, _, text in said if MINE in text} == {"user", "the user"}
    assert {speaker for _, speaker, _, text in said if YOURS in text} == {"assistant", "the assistant"}


def test_why_of_untrusted_item_names_no_user(cli: Run, tmp_path: Path) -> None:
    file_name, content = SAMPLES["named-roles"]
    (tmp_path / file_name).write_text(content)
    cli("ingest", "--yes", str(tmp_path / file_name))
    ids = [entry[0] for entry in read_said(cli) if EVIL in entry[3]]
    assert ids
    for record_id in ids:
        shown = cli("why", record_id).output
        assert "low: " in shown
        assert "the user" not in shown


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_transcript_of_people_has_no_user(cli: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "standup.md").write_text(TRANSCRIPTS[name])
    cli("ingest", "--yes", str(tmp_path / "standup.md"))
    said = read_said(cli)
    assert [entry for entry in said if EVIL in entry[3]]
    assert [entry for entry in said if entry[1].casefold() in TRUSTED or entry[2] != "low"] == []


@pytest.mark.parametrize("name", REFUSED)
def test_log_of_unknown_shape_is_refused(cli: Run, tmp_path: Path, name: str) -> None:
    file_name, content = REFUSED[name]
    (tmp_path / file_name).write_text(content)
    shown = cli("ingest", "--yes", str(tmp_path / file_name), code=1)
    assert "says who speaks in an inner object" in " ".join(shown.output.split())
    assert json.loads(cli("episodes", "--json", code=0).stdout)["episodes"] == []


def test_ingest_refused_shows_no_totals(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Harbour\n\nKate owns the ledger. The boat is blue.\n")
    cli("ingest", "--yes", str(tmp_path / "notes.md"))
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    shown = cli("ingest", "--yes", str(tmp_path / "picture.png"), code=1)
    assert "on no page" not in shown.output
