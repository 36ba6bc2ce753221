"""What a feature package wrote is cleaned, backed up, exported and encrypted whichever packages are loaded."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.core_run import MAIN_MODULES
from tests.fork_server import CommandForker
from tests.support import read_files

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXTURES = Path(__file__).parents[1] / "fixtures"
NEWEST = FIXTURES / "34d6a65e" / "full" / "agents"


@pytest.fixture(scope="module")
def forker() -> Iterator[CommandForker]:
    forker = CommandForker(*MAIN_MODULES, "amplifier_core", "time_machine")
    yield forker
    forker.close()


def run_features(forker: CommandForker, root: Path, mode: str) -> dict[str, Any]:
    """Run `tests.feature_run` on a copy of the newest full fixture."""
    shutil.copytree(NEWEST, root)
    for path in (root, *root.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (0, 0))
    variables = {**os.environ, "HOME": str(root.parent), "AGENT_MEMORY_KEY": "fixture-only-passphrase"}
    process = forker.run(["tests.feature_run", str(root), mode], variables)
    assert process.returncode == 0, process.stderr
    report: dict[str, Any] = json.loads(process.stdout)
    return report


def read_contents(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each file below a folder, and each member of a zip file."""
    for path, content in read_files(root):
        name = path.relative_to(root).as_posix()
        if path.suffix == ".zip":
            with zipfile.ZipFile(BytesIO(content)) as archive:
                yield from ((f"{name}/{member}", archive.read(member)) for member in archive.namelist())
        else:
            yield name, content


def test_folder_of_all_features_is_cleaned_by_main_modules_alone(forker: CommandForker, tmp_path: Path) -> None:
    alone, everything = (run_features(forker, tmp_path / mode, mode) for mode in ("alone", "all"))
    assert everything.pop("loaded_before") > 2 * alone.pop("loaded_before")
    assert everything == alone
    assert alone["failed"] == alone["found"] == []
    assert dict(read_contents(tmp_path / "alone")) == dict(read_contents(tmp_path / "all"))


@pytest.mark.parametrize(
    ("package", "files"),
    [
        ("agent_memory.knowledge", ("entities.yaml", "episodes.yaml", "knowledge.yaml")),
        ("agent_memory.care.archive", ("archive.yaml",)),
    ],
)
def test_purge_without_a_package_names_its_files(
    package: str, files: tuple[str, ...], forker: CommandForker, tmp_path: Path
) -> None:
    report = run_features(forker, tmp_path / "agents", f"without:{package}")
    assert report["failed"] == [f"not cleaned: {name} (the package {package} is absent)" for name in files]
