"""The advice how to install what is missing: it names packages that exist, and the installer of this environment."""

from __future__ import annotations

import shlex
import shutil
import sys
import tomllib
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from agent_memory.settings import installation
from agent_memory.settings.installation import REQUIREMENTS, Part, advice, install_command
from tests.rows import check_rows

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def with_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "find_spec", lambda name: ModuleSpec(name, None))


@pytest.fixture
def with_uv_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "find_spec", lambda _name: None)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")


@check_rows("part", sorted(REQUIREMENTS))
def test_a_part_consists_of_what_its_extra_says(part: Part) -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert list(REQUIREMENTS[part]) == extras[part]


@pytest.mark.usefixtures("with_pip")
def test_pip_of_this_interpreter_is_used_where_there_is_one() -> None:
    words = shlex.split(install_command("openai"))
    assert words[:4] == [sys.executable, "-m", "pip", "install"]
    assert words[4:] == sorted(REQUIREMENTS["openai"])


@pytest.mark.usefixtures("with_uv_alone")
def test_uv_is_told_the_interpreter_where_there_is_no_pip() -> None:
    words = shlex.split(install_command("cli"))
    assert words == ["uv", "pip", "install", "--python", sys.executable, "rich>=14.3", "typer>=0.29"]


@pytest.mark.usefixtures("with_uv_alone")
def test_a_damaged_package_is_installed_anew_by_uv() -> None:
    assert "--reinstall" in shlex.split(install_command("local", reinstall=True))


@pytest.mark.usefixtures("with_pip")
def test_a_damaged_package_is_installed_anew_by_pip() -> None:
    assert "--force-reinstall" in shlex.split(install_command("local", reinstall=True))


def test_what_two_parts_share_is_named_once() -> None:
    words = shlex.split(install_command("local", "vector"))
    assert words.count("numpy>=2.0") == 1
    assert {"onnxruntime>=1.19", "qdrant-edge-py==0.9.*"} < set(words)


def test_a_path_with_a_space_survives_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/my tools/bin/python")
    assert "/opt/my tools/bin/python" in shlex.split(advice("cli").partition(": ")[2])


def test_no_other_place_tells_how_to_install() -> None:
    places = {*(REPOSITORY / "src").rglob("*.py"), *(REPOSITORY / "modules").rglob("*.py")}
    others = places - {REPOSITORY / "src" / "agent_memory" / "installing.py"}
    assert [path.name for path in others if "pip install" in path.read_text()] == []
