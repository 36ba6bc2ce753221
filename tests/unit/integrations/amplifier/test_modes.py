"""Modes by project and category: which one counts, and that what is not understood keeps less and not more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.memory.consent import MODES, ConsentModes, read_modes, strictest
from agent_memory.tools.consent import get_mode
from tests.rows import check_rows
from tests.support import plan
from tests.unit.integrations.amplifier.conftest import host_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.integrations.amplifier.conftest import Sessions

MEMORY: dict[str, Any] = {
    "mode": "ask",
    "projects": {"Kestrel": "autonomous", "secret lab": "off", "odd": 7},
    "categories": {"preference": "manual", "insight": "autonomous", "recipe": "manual", "note": None},
}


@check_rows(
    ("category", "project", "mode"),
    [
        ("", "", "ask"),
        ("decision", "elsewhere", "ask"),
        ("decision", "kestrel", "autonomous"),
        ("decision", "KESTREL", "autonomous"),
        ("preference", "", "manual"),
        ("preference", "Kestrel", "manual"),
        ("insight", "", "autonomous"),
        ("insight", "Secret Lab", "manual"),
        ("recipe", "", "manual"),
        ("note", "", "ask"),
        ("note", "odd", "manual"),
    ],
)
def test_what_is_named_counts_and_of_two_that_are_named_the_stricter(category: str, project: str, mode: str) -> None:
    modes, warnings = read_modes(MEMORY, "memory")
    assert modes.of(category, project) == mode
    assert [warning.split()[0] for warning in warnings] == ["memory.projects.odd"]


def test_a_category_that_is_mistyped_holds_for_all() -> None:
    modes, (warning,) = read_modes({"categories": {"preferences": "manual"}}, "memory")
    assert modes.of("decision") == "manual"
    assert "did you mean 'preference'" in warning


def test_modes_have_an_order() -> None:
    assert strictest([*MODES]) == "manual"
    assert strictest(["ask", "autonomous"]) == "ask"
    assert ConsentModes().of("note", "kestrel") == "autonomous"


@pytest.mark.parametrize("projects", [True, False])
async def test_a_session_is_in_the_mode_of_its_project_also_where_memories_are_noted_without_one(
    make_session: Sessions, tmp_path: Path, projects: bool
) -> None:
    session = make_session(
        config=plan(agent_identity="bob", memory={"projects": {"Kestrel": "manual"}}), settings={"projects": projects}
    )
    assert get_mode(session) == "autonomous"
    folder = tmp_path / "kestrel"
    (folder / ".git").mkdir(parents=True)
    host_of(session).register_capability("session.working_dir", str(folder))
    assert get_mode(session) == get_mode(session, "note") == "manual"
    assert not session.identity().may_listen(session.project())
