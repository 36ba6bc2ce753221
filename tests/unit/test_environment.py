"""The environment that `make` makes: made once, begun anew after an interruption, and told of while it is made."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import venv
from typing import TYPE_CHECKING, Any, Self

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import environment
from tests.rows import check_rows

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def installs(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Let nothing be downloaded; return the folders that something would have been installed into."""
    folders: list[Path] = []
    monkeypatch.setattr(environment, "_install", lambda folder, _kind: folders.append(folder))
    return folders


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where an environment is to be; one without pip counts as one with, because that takes seconds."""
    real = subprocess.run

    def run(words: list[str], **more: Any) -> Any:
        if "pip" in words:
            words = [words[0], "-c", ""]
        return real([*words, *(["--without-pip"] if "venv" in words else [])], **more)

    monkeypatch.setattr(subprocess, "run", run)
    return tmp_path / "venv"


def test_what_is_made_is_not_made_again(folder: Path, installs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert environment.main([str(folder), "demo"]) == 0
    assert "once" in capsys.readouterr().out
    assert environment.main([str(folder), "demo"]) == 0
    assert capsys.readouterr().out == ""
    assert installs == [folder]


def test_an_interrupted_one_is_begun_anew(folder: Path, installs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(where: Path, _kind: str) -> None:
        (where / "lib" / "half_a_package.py").touch()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(environment, "_install", interrupted)
        assert environment.main([str(folder), "demo"]) == 130
    assert not environment.is_made(folder, environment.fingerprint("demo"))
    assert environment.main([str(folder), "demo"]) == 0
    assert not (folder / "lib" / "half_a_package.py").exists()
    assert installs == [folder]


@pytest.mark.usefixtures("installs")
def test_one_killed_before_its_python_was_there_is_completed(folder: Path) -> None:
    (folder / "lib").mkdir(parents=True)
    (folder / "pyvenv.cfg").touch()
    assert environment.main([str(folder), "demo"]) == 0
    assert environment.is_made(folder, environment.fingerprint("demo"))


@pytest.mark.usefixtures("installs")
def test_one_whose_python_was_removed_is_made_anew(folder: Path) -> None:
    environment.make(folder, "demo")
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to("/nowhere/python")
    assert environment.main([str(folder), "demo"]) == 0
    assert environment.is_made(folder, environment.fingerprint("demo"))


def test_somebody_elses_environment_is_added_to_and_never_removed(
    folder: Path, installs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(folder)
    (folder / "mine.txt").touch()

    def interrupted(_folder: Path, _kind: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(environment, "_install", interrupted)
        assert environment.main([str(folder), "dev"]) == 130
    environment.make(folder, "dev")
    assert (folder / "mine.txt").exists()
    assert installs == [folder]


def test_a_folder_that_is_no_environment_is_left_alone(
    folder: Path, installs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "mine.txt").touch()
    assert environment.main([str(folder), "dev"]) == 1
    assert "is no environment" in capsys.readouterr().err
    assert (folder / "bin" / "mine.txt").exists()
    assert installs == []


def test_another_kind_or_changed_requirements_are_installed(
    folder: Path, installs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.make(folder, "demo")
    environment.make(folder, "dev")
    monkeypatch.setattr(environment, "fingerprint", lambda kind: f"{kind} with another requirement")
    environment.make(folder, "dev")
    assert installs == [folder] * 3


def test_a_wrong_call_is_answered_with_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert environment.main(["only-a-folder"]) == 2
    assert environment.main(["x", "everything"]) == 2
    assert "FOLDER KIND" in capsys.readouterr().err


def test_an_old_python_is_refused_in_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 14))
    assert environment.main([str(folder), "demo"]) == 1
    assert "3.11 or newer" in capsys.readouterr().err
    assert not folder.exists()


@check_rows(
    ("line", "shown"),
    [
        ("  Downloading onnxruntime-1.31.1-cp311-cp311-manylinux_2_27.whl (23.8 MB)\n", "onnxruntime-1.31.1 (23.8 MB)"),
        ("  Downloading https://a.host/x/click-8.5.1-py3-none-any.whl (126 kB)\n", None),
        ("  Downloading https://a.host/x/numpy-2.4.1-py3-none-any.whl (16.1 MB)\n", "numpy-2.4.1 (16.1 MB)"),
        ("  Downloading click-8.5.1-py3-none-any.whl.metadata (2 kB)\n", None),
        ("Installing collected packages: numpy, click, x\n", "unpacking 3 packages"),
        ("Requirement already satisfied: click\n", None),
        ("\n", None),
    ],
)
def test_who_waits_is_told_what_comes(line: str, shown: str | None) -> None:
    assert environment.worth_showing(line) == shown


def test_the_lowest_versions_are_those_that_the_projects_declare() -> None:
    folders = [environment.REPOSITORY, *environment.packages("lowest")]
    lowest = dict(line.split("==") for line in environment.lowest_versions(folders))
    assert {"pydantic", "numpy", "typer", "openai", "qdrant-client", "regex"} <= set(lowest)
    assert "pytest" not in lowest
    text = "".join((folder / "pyproject.toml").read_text().lower() for folder in folders)
    for name, version in lowest.items():
        assert re.search(f'"{name}[>=]={re.escape(version)}[".,]', text)


@pytest.mark.parametrize(
    ("first", "second", "complaint"),
    [
        ('"pydantic"', '"numpy>=2"', "pydantic has no lower bound"),
        ('"numpy>=1.26"', '"numpy>=2"', "numpy from 2, elsewhere from 1.26"),
    ],
)
def test_bounds_that_say_nothing_or_contradict_each_other_are_told(
    first: str, second: str, complaint: str, tmp_path: Path
) -> None:
    for name, requirement in (("one", first), ("two", second)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").write_text(f"[project]\ndependencies = [{requirement}]\n")
    with pytest.raises(environment.EnvironmentFailedError, match=complaint):
        environment.lowest_versions([tmp_path / "one", tmp_path / "two"])


def test_an_environment_of_the_lowest_versions_is_held_to_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    class Pip:
        returncode = 0
        stdout = ()

        def __init__(self, command: list[str], **_: object) -> None:
            commands.append(command)

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    real = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda command, **more: (Pip if "install" in command else real)(command, **more)
    )
    for kind in ("lowest", "dev"):
        assert environment.main([str(folder), kind]) == 0
        if kind == "lowest":
            pinned = (folder / "lowest.txt").read_text()
    constraints = folder / "lowest.txt"
    assert [str(constraints) in command for command in commands] == [True, False, False]
    assert ["--require-hashes" in command for command in commands] == [False, True, False]
    assert "--no-deps" in commands[2]
    assert "typer==" in pinned


def read_locked_versions() -> dict[str, list[str]]:
    versions: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", environment.LOCK.read_text("utf-8"), re.MULTILINE):
        versions.setdefault(canonicalize_name(name), []).append(version)
    return versions


def test_lock_has_every_requirement_of_development() -> None:
    """To repair it, run `make lock`."""
    locked, folders = read_locked_versions(), [environment.REPOSITORY, *environment.packages("dev")]
    for folder in folders:
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        extras = project.get("optional-dependencies", {})
        wanted = [
            *project["dependencies"],
            *(line for name in environment.EXTRAS["dev"].split(",") for line in extras.get(name, ())),
        ]
        for requirement in map(Requirement, wanted):
            versions = locked.get(canonicalize_name(requirement.name), [])
            assert any(requirement.specifier.contains(version) for version in versions), f"{folder.name}: {requirement}"


def test_lock_names_no_registry_and_hashes_every_version() -> None:
    text = environment.LOCK.read_text("utf-8")
    assert "://" not in text
    entries = re.split(r"\n(?=\S)", text.strip())
    assert len(entries) > 50
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
