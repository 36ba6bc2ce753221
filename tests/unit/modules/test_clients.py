"""The modules that bring a client into the host, and the behaviors that list them."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

import yaml

from agent_memory.settings import ServiceSettings, ToolSettings
from agent_memory.settings.installation import REQUIREMENTS, Part
from tests.rows import check_rows
from tests.support import coordinator_of

REPOSITORY = Path(__file__).parents[3]
BEHAVIORS = sorted((REPOSITORY / "behaviors").glob("*.yaml"))
CLIENTS: list[tuple[str, Part]] = [("hooks-memory-openai", "openai"), ("hooks-memory-server", "server")]


def project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return found


@check_rows(("module", "part"), CLIENTS)
def test_with_the_tools_it_completes_the_extra(module: str, part: Part) -> None:
    tools = project(REPOSITORY / "modules" / "tool-memory-semantic")["dependencies"]
    own = project(REPOSITORY / "modules" / module)["dependencies"]
    assert len(own) == 1
    assert set(REQUIREMENTS[part]) <= {*tools, *own}


@check_rows(("module", "part"), CLIENTS)
async def test_it_mounts_without_a_trace(module: str, part: Part) -> None:
    coordinator = coordinator_of("s")
    package = importlib.import_module(f"amplifier_module_{module.replace('-', '_')}")
    assert module.endswith(part)
    assert await package.mount(coordinator, {}) is None
    assert not coordinator.get("tools")


@check_rows("path", BEHAVIORS, ids=lambda path: path.stem)
def test_what_a_behavior_lists_is_there_and_its_settings_are_known(path: Path) -> None:
    behavior = yaml.safe_load(path.read_text())
    for entry in [*behavior.get("tools", []), *behavior.get("hooks", [])]:
        folder = (path.parent / entry["source"]).resolve()
        assert project(folder)["entry-points"]["amplifier.modules"].keys() == {entry["module"]}
        if config := entry.get("config"):
            assert config.keys() <= {*ToolSettings.model_fields, *ServiceSettings.model_fields}
    for included in behavior.get("includes", []):
        namespace, _, name = included["bundle"].partition(":")
        assert namespace == "agent-memory"
        assert (REPOSITORY / f"{name}.yaml").is_file()


def test_every_module_is_in_a_behavior() -> None:
    behaviors = [yaml.safe_load(path.read_text()) for path in BEHAVIORS]
    listed = {entry["module"] for each in behaviors for entry in [*each.get("tools", []), *each.get("hooks", [])]}
    assert listed == {path.name for path in (REPOSITORY / "modules").iterdir() if (path / "pyproject.toml").exists()}
