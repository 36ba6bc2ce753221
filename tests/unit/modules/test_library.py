"""How modules find their library: beside them, in the version they were made with, or they say what is wrong."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import agent_memory
from tests.concurrency.processes import environment

REPOSITORY = Path(__file__).parents[3]
MODULES = sorted(path.parent for path in REPOSITORY.glob("modules/*/amplifier_module_*/__init__.py"))
WITH_LIBRARY = [path for path in MODULES if (path / "session_mount.py").exists()]
MOUNT = """
import asyncio, importlib, json, sys
sys.path[:0] = json.loads(sys.argv[2])

class Coordinator:
    tools = {}
    async def mount(self, point, tool, name):
        self.tools[name] = tool

async def main():
    module = importlib.import_module(sys.argv[1])
    coordinator = Coordinator()
    await module.mount(coordinator, {})
    tools = {name: (await tool.execute({})).output for name, tool in coordinator.tools.items()}
    print(json.dumps({"tools": tools}))

asyncio.run(main())
"""
WHERE = """
import importlib, json, sys
sys.path[:0] = json.loads(sys.argv[2])
importlib.import_module(sys.argv[1])
import agent_memory
print(json.dumps(agent_memory.__file__))
"""


def run(script: str, module: str, path: list[Path], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, module, json.dumps([str(each) for each in path])],
        cwd=folder,
        env={**environment(), "HOME": str(folder), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def a_clone(folder: Path, *, version: str = agent_memory.__version__) -> Path:
    """Copy what a host clones, with a library that calls itself `version`."""
    for name in ("modules", "src"):  # with byte code, which is compiled again where a test changes a source
        shutil.copytree(REPOSITORY / name, folder / name)
    front = folder / "src" / "agent_memory" / "__init__.py"
    front.write_text(
        front.read_text().replace(f'__version__ = "{agent_memory.__version__}"', f'__version__ = "{version}"')
    )
    return folder


@pytest.fixture(scope="module")
def clones(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a clone, and one of an older version, which no test may change."""
    folder = tmp_path_factory.mktemp("clones")
    return a_clone(folder / "new"), a_clone(folder / "old", version="0.0.1")


def module_folders(clone: Path) -> list[Path]:
    return sorted((clone / "modules").iterdir())


def without_a_library(folder: Path) -> Path:
    """Make a folder first on the path whose `agent_memory` cannot be imported, as one whose files were removed."""
    broken = folder / "broken"
    broken.mkdir()
    (broken / "agent_memory.py").write_text("raise ModuleNotFoundError(\"No module named 'agent_memory'\")\n")
    return broken


def test_front_of_six_modules_is_equal_but_for_name_and_type() -> None:
    assert len(WITH_LIBRARY) == 6
    fronts = {(path / "__init__.py").read_text().rpartition('"\n\nVERSION')[2] for path in WITH_LIBRARY}
    assert len(fronts) == 1


def test_all_parts_have_one_version() -> None:
    projects = [REPOSITORY / "pyproject.toml", *sorted(REPOSITORY.glob("modules/*/pyproject.toml"))]
    versions = {tomllib.loads(path.read_text())["project"]["version"] for path in projects}
    needed = {importlib.import_module(path.name).VERSION for path in WITH_LIBRARY}
    assert versions == needed == {agent_memory.__version__}


@pytest.mark.parametrize("module", [path.name for path in WITH_LIBRARY])
def test_the_library_beside_the_module_goes_before_one_installed(
    module: str, clones: tuple[Path, Path], tmp_path: Path
) -> None:
    clone, old = clones
    path = [*module_folders(clone), old / "src"]
    done = run(WHERE, module, path, tmp_path)
    assert done.stderr == ""
    assert Path(json.loads(done.stdout)) == clone / "src" / "agent_memory" / "__init__.py"


@pytest.mark.parametrize("module", [path.name for path in WITH_LIBRARY])
def test_a_library_whose_files_were_removed_is_found_beside_the_module(
    module: str, clones: tuple[Path, Path], tmp_path: Path
) -> None:
    clone, _ = clones
    done = run(WHERE, module, [*module_folders(clone), without_a_library(tmp_path)], tmp_path)
    assert done.stderr == ""
    assert Path(json.loads(done.stdout)).is_relative_to(clone)


def test_a_library_of_another_version_is_told_by_one_tool_with_what_to_do(
    clones: tuple[Path, Path], tmp_path: Path
) -> None:
    clone, old = tmp_path / "new", clones[1]
    shutil.copytree(REPOSITORY / "modules", clone / "modules")
    path = [*module_folders(clone), old / "src"]
    done = run(MOUNT, "amplifier_module_tool_memory_semantic", path, tmp_path)
    tools = json.loads(done.stdout)["tools"]
    assert list(tools) == ["memory_status"]
    assert tools["memory_status"]["enabled"] is False
    assert "agent_memory 0.0.1" in tools["memory_status"]["reason"]
    assert "uninstall" in tools["memory_status"]["what_to_do"]
    for module in ("amplifier_module_context_memory_scratchpad", "amplifier_module_hooks_memory_capture"):
        done = run(MOUNT, module, path, tmp_path)
        assert json.loads(done.stdout) == {"tools": {}}
        assert "agent_memory 0.0.1" in done.stderr


@pytest.mark.parametrize("library", ["without loader", "absent"])
def test_a_library_without_loader_is_told_by_one_tool_with_what_to_do(library: str, tmp_path: Path) -> None:
    clone = tmp_path / "new"
    shutil.copytree(REPOSITORY / "modules", clone / "modules")
    if library == "absent":
        path = [*module_folders(clone), without_a_library(tmp_path)]
    else:
        old = a_clone(tmp_path / "old")
        (old / "src" / "agent_memory" / "module_loader.py").unlink()
        path = [*module_folders(clone), old / "src"]
    done = run(MOUNT, "amplifier_module_tool_memory_semantic", path, tmp_path)
    tools = json.loads(done.stdout)["tools"]
    assert list(tools) == ["memory_status"]
    assert "agent_memory" in tools["memory_status"]["reason"]
    assert "uninstall" in tools["memory_status"]["what_to_do"]
    for module in ("amplifier_module_context_memory_scratchpad", "amplifier_module_hooks_memory_capture"):
        done = run(MOUNT, module, path, tmp_path)
        assert json.loads(done.stdout) == {"tools": {}}
        assert "Memory is off" in done.stderr


@pytest.mark.parametrize(
    "new_code", ["from agent_memory import brand_new", "import agent_memory; agent_memory.brand_new"]
)
def test_code_that_the_library_does_not_know_is_told_the_same_way(new_code: str, tmp_path: Path) -> None:
    clone = a_clone(tmp_path / "new")
    path = clone / "modules" / "tool-memory-semantic" / "amplifier_module_tool_memory_semantic" / "session_mount.py"
    path.write_text(f"{new_code}\n")
    done = run(MOUNT, "amplifier_module_tool_memory_semantic", module_folders(clone), tmp_path)
    assert "brand_new" in json.loads(done.stdout)["tools"]["memory_status"]["reason"]


def test_a_dependency_that_was_never_installed_is_named(tmp_path: Path) -> None:
    clone = a_clone(tmp_path / "new")
    front = clone / "src" / "agent_memory" / "integrations" / "amplifier" / "__init__.py"
    front.write_text(f"import a_new_dependency\n{front.read_text().split('from __future__', 1)[0]}")
    done = run(MOUNT, "amplifier_module_tool_memory_semantic", module_folders(clone), tmp_path)
    assert "a_new_dependency" in json.loads(done.stdout)["tools"]["memory_status"]["reason"]
