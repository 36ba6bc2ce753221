"""What `import agent_memory` does not do: write, listen, load a model, or drag in what few sessions need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import agent_memory
from tests.concurrency.processes import environment

HEAVY = (
    "numpy", "onnxruntime", "tokenizers", "openai", "qdrant_client", "qdrant_edge", "detect_secrets", "amplifier_core",
    "structlog", "yaml", "filelock", "typer", "rich",
)  # fmt: skip
SCRIPT = """
import json, os, sys, threading
import importlib
importlib.import_module(sys.argv[1])
modules = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps({"modules": modules, "threads": threading.active_count()}))
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


@pytest.mark.parametrize("module", ["agent_memory", "agent_memory.service", "agent_memory.host"])
def test_importing_creates_no_file_starts_no_thread_and_loads_nothing_heavy(module: str, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    result = imported(module, folder)
    assert list(folder.iterdir()) == []
    assert result["threads"] == 1
    assert set(HEAVY) & set(result["modules"]) == set()  # type: ignore[call-overload]


def test_the_front_door_itself_loads_nothing_and_the_holder_of_a_shard_no_models(tmp_path: Path) -> None:
    assert "pydantic" not in imported("agent_memory", tmp_path)["modules"]  # type: ignore[operator]
    assert "pydantic" not in imported("agent_memory.engine.host", tmp_path)["modules"]  # type: ignore[operator]


def test_every_name_at_the_front_door_is_the_one_behind_it() -> None:
    for name in agent_memory.__all__:
        assert getattr(agent_memory, name).__name__ == name
        assert name in dir(agent_memory)
    with pytest.raises(AttributeError, match="no attribute 'Memmory'"):
        agent_memory.Memmory  # type: ignore[attr-defined]  # noqa: B018


def test_the_measure_would_notice(tmp_path: Path) -> None:
    assert "yaml" in imported("yaml", tmp_path)["modules"]  # type: ignore[operator]
    assert os.environ["HOME"] != str(Path("~root").expanduser())
