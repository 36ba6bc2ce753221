"""Manifests of the plugin and the registry, by the fields that their hosts document."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from scripts.release import build_server_document

PLUGIN = Path(__file__).parents[2] / "plugins" / "agent-memory"
COMMON = {"name", "version", "description", "author", "homepage", "repository", "license", "keywords"}
FIELDS = {
    ".claude-plugin/plugin.json": COMMON
    | {"$schema", "commands", "agents", "skills", "hooks", "mcpServers", "lspServers", "outputStyles", "dependencies"},
    ".codex-plugin/plugin.json": COMMON | {"skills", "hooks", "mcpServers", "apps", "interface"},
    ".cursor-plugin/plugin.json": COMMON
    | {"displayName", "publisher", "logo", "category", "tags", "commands", "agents", "skills", "rules", "hooks"}
    | {"variables", "mcpServers", "minClientVersions"},
    "gemini-extension.json": {"name", "version", "description", "mcpServers", "contextFileName", "excludeTools"}
    | {"settings", "migratedTo", "themes", "plan"},
}


def read_manifest(name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((PLUGIN / name).read_text())
    return value


@pytest.mark.parametrize("name", FIELDS)
def test_manifest_has_documented_fields_only(name: str) -> None:
    value = read_manifest(name)
    assert value.keys() <= FIELDS[name]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", value["name"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", value["version"])
    assert value["description"]
    assert "author" not in value or isinstance(value["author"]["name"], str)


@pytest.mark.parametrize("name", FIELDS)
def test_manifest_names_paths_inside_the_plugin(name: str) -> None:
    value = read_manifest(name)
    for field in ("skills", "hooks", "mcpServers"):
        if isinstance(path := value.get(field), str):
            assert path.startswith("./")
            assert (PLUGIN / path).resolve().is_relative_to(PLUGIN)
            assert (PLUGIN / path).exists()


@pytest.mark.parametrize("name", [".mcp.json", "gemini-extension.json"])
def test_server_entry_starts_a_program_on_stdio(name: str) -> None:
    (entry,) = read_manifest(name)["mcpServers"].values()
    assert entry.keys() <= {"type", "command", "args", "env", "cwd", "timeout", "description"}
    assert isinstance(entry["command"], str)
    assert all(isinstance(argument, str) for argument in entry["args"])


def test_server_document_has_what_the_registry_requires() -> None:
    document = build_server_document("io.github.example")
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", document["name"])
    assert 1 <= len(document["description"]) <= 100
    assert document["version"] == read_manifest("gemini-extension.json")["version"]
    (package,) = document["packages"]
    assert {"registryType", "identifier", "transport"} <= package.keys()
    assert package["version"] == document["version"]
    assert package["transport"] == {"type": "stdio"}
    assert package["packageArguments"] == [{"type": "positional", "value": "mcp"}]
