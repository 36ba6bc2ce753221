"""Project that a session works on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.files.layout import find_project_name
from tests.unit.integrations.amplifier.conftest import host_of

if TYPE_CHECKING:
    from tests.unit.integrations.amplifier.conftest import Sessions


def test_the_repository_around_a_folder_names_the_project(home: Path) -> None:
    deep = home / "code" / "kestrel" / "src" / "core"
    deep.mkdir(parents=True)
    assert find_project_name(deep) == "core", "outside of a repository the folder's own name"
    (home / "code" / "kestrel" / ".git").mkdir()
    assert (
        find_project_name(deep)
        == find_project_name(deep.parent)
        == find_project_name(home / "code" / "kestrel")
        == "kestrel"
    )


def test_nobody_works_on_a_home_or_on_what_lies_around_it(home: Path) -> None:
    (home / ".git").mkdir()  # some keep their settings in a repository
    (home / "notes").mkdir()
    assert [find_project_name(each) for each in (home, home.parent, Path("/"))] == ["", "", ""]
    assert find_project_name(home / "notes") == "notes"


def test_a_name_steers_nothing_and_a_loop_is_no_project(tmp_path: Path) -> None:
    strange = tmp_path / "a\x1b[31m\u202eb"
    strange.mkdir()
    assert "\x1b" not in find_project_name(strange)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert find_project_name(loop) in {"", "loop"}


@pytest.mark.parametrize(
    ("settings", "working_dir", "project"),
    [
        ({}, "/srv/kestrel", "kestrel"),
        ({}, Path("/srv/kestrel"), "kestrel"),
        ({"project": "heron"}, "/srv/kestrel", "heron"),
        ({"projects": False, "project": "heron"}, "/srv/kestrel", ""),
        ({}, None, ""),
        ({}, "", ""),
        ({}, 7, ""),
    ],
)
async def test_project_in_settings_goes_before_the_folder(
    make_session: Sessions, settings: Any, working_dir: Any, project: str
) -> None:
    session = make_session(settings=settings)
    host_of(session).register_capability("session.working_dir", working_dir)
    assert session.caller.project == project
