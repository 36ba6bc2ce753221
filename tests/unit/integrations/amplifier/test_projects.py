"""On which project a session works."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_memory.integrations.amplifier.projects import name_of, project_of
from agent_memory.settings import ServiceSettings


def host(working_dir: Any) -> Any:
    capabilities = {"session.working_dir": working_dir}
    return SimpleNamespace(get_capability=capabilities.get)


def test_the_repository_around_a_folder_names_the_project(home: Path) -> None:
    deep = home / "code" / "kestrel" / "src" / "core"
    deep.mkdir(parents=True)
    assert name_of(deep) == "core", "outside of a repository the folder's own name"
    (home / "code" / "kestrel" / ".git").mkdir()
    assert name_of(deep) == name_of(deep.parent) == name_of(home / "code" / "kestrel") == "kestrel"


def test_nobody_works_on_a_home_or_on_what_lies_around_it(home: Path) -> None:
    (home / ".git").mkdir()  # some keep their settings in a repository
    (home / "notes").mkdir()
    assert [name_of(each) for each in (home, home.parent, Path("/"))] == ["", "", ""]
    assert name_of(home / "notes") == "notes"


def test_a_name_steers_nothing_and_a_loop_is_no_project(tmp_path: Path) -> None:
    strange = tmp_path / "a\x1b[31m\u202eb"
    strange.mkdir()
    assert "\x1b" not in name_of(strange)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert name_of(loop) in {"", "loop"}


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
def test_the_configuration_goes_before_the_folder(settings: Any, working_dir: Any, project: str) -> None:
    assert project_of(ServiceSettings(**settings), host(working_dir)) == project
