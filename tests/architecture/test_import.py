"""What `import agent_memory` does not do: write, listen, load a model, or drag in what few sessions need."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import agent_memory
import agent_memory.storage
from tests.architecture.test_layers import parsed, place_of, sources
from tests.concurrency.processes import environment
from tests.rows import check_rows

if TYPE_CHECKING:
    from types import ModuleType

HEAVY = (
    "numpy", "onnxruntime", "tokenizers", "openai", "qdrant_client", "qdrant_edge", "amplifier_core",
    "structlog", "yaml", "typer", "rich",
)  # fmt: skip
SCRIPT = """
import json, os, sys, threading
import importlib
importlib.import_module(sys.argv[1])
modules = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps({"modules": modules, "threads": threading.active_count()}))
"""

OPENED = """
import asyncio, json, sys
from agent_memory import FileStorage, Memory, ServiceSettings
async def remember():
    storage = FileStorage("bob", sys.argv[1], settings=ServiceSettings(embedder="none"))
    await storage.store(Memory(agent_id="bob", content="the build takes nine minutes"))
    found = await storage.list_recent(limit=1)
    await storage.close()
    return len(found)
found = asyncio.run(remember())
print(json.dumps({"found": found, "numpy": "numpy" in sys.modules}))
"""


def imported(module: str, folder: Path) -> dict[str, object]:
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT, module],
        cwd=folder,
        env={**environment(), "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert finished.stderr == ""
    result: dict[str, object] = json.loads(finished.stdout)
    return result


@pytest.mark.parametrize("module", ["agent_memory", "agent_memory.memory", "agent_memory.integrations.amplifier"])
def test_importing_creates_no_file_starts_no_thread_and_loads_nothing_heavy(module: str, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    result = imported(module, folder)
    assert list(folder.iterdir()) == []
    assert result["threads"] == 1
    assert set(HEAVY) & set(result["modules"]) == set()  # type: ignore[call-overload]


def test_the_front_door_itself_loads_nothing_and_the_holder_of_a_shard_no_models(tmp_path: Path) -> None:
    assert "pydantic" not in imported("agent_memory", tmp_path)["modules"]  # type: ignore[operator]
    assert "pydantic" not in imported("agent_memory.storage", tmp_path)["modules"]  # type: ignore[operator]
    assert "pydantic" not in imported("agent_memory.engines.shard_process", tmp_path)["modules"]  # type: ignore[operator]


def test_help_of_commands_loads_no_models_and_no_event_loop(tmp_path: Path) -> None:
    modules = imported("agent_memory.cli.app", tmp_path)["modules"]
    assert isinstance(modules, list)
    assert {"pydantic", "asyncio", "numpy", "rich"}.isdisjoint(modules)


def test_a_storage_without_segments_is_opened_without_numpy(tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-c", OPENED, str(tmp_path)],
        env={**environment(), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(finished.stdout) == {"found": 1, "numpy": False}


@check_rows("package", [agent_memory, agent_memory.storage])
def test_every_name_that_is_loaded_when_asked_for_is_the_one_behind_it(package: ModuleType) -> None:
    for name in package.__all__:
        assert getattr(getattr(package, name), "__name__", name) == name
        assert name in dir(package)
    with pytest.raises(AttributeError, match="no attribute 'Memmory'"):
        package.Memmory  # noqa: B018


def test_list_fields_do_not_make_pydantic_parse_a_signature() -> None:
    """`new_list` says why."""
    builtin_factories = [
        f"{place_of(path)}:{node.lineno}"
        for path in sources()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Field"
        if any(word.arg == "default_factory" and getattr(word.value, "id", "") == "list" for word in node.keywords)
    ]
    assert builtin_factories == []


def test_the_measure_would_notice(tmp_path: Path) -> None:
    assert "yaml" in imported("yaml", tmp_path)["modules"]  # type: ignore[operator]
    assert os.environ["HOME"] != str(Path("~root").expanduser())
