"""A field of memories, and a filter by it, are declared in two files of the library; tools and commands follow."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.concurrency.processes import REPOSITORY, environment

if TYPE_CHECKING:
    from pathlib import Path

CHANGES = {
    "memory.py": {
        "    supersedes: MemoryId | None = None\n": (
            "    supersedes: MemoryId | None = None\n"
            '    shop: str = Field(default="", max_length=64, description="what it belongs to")\n'
        ),
        '("category", self.category), ': '("category", self.category), ("shop", self.shop), ',
    },
    "search.py": {
        "    category: Category | None = None\n": (
            "    category: Category | None = None\n"
            '    shop: str | None = Field(default=None, description="of this shop")\n'
        ),
    },
}


@pytest.fixture
def with_shop(tmp_path: Path) -> Path:
    """Return a copy of the library whose memories have a shop."""
    shutil.copytree(REPOSITORY / "src" / "agent_memory", tmp_path / "src" / "agent_memory")
    for name, replacements in CHANGES.items():
        path = tmp_path / "src" / "agent_memory" / "models" / name
        text = path.read_text(encoding="utf-8")
        for old, new in replacements.items():
            assert text.count(old) == 1
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_a_field_and_its_filter_are_declared_once(with_shop: Path) -> None:
    places = {**environment(), "HOME": str(with_shop)}
    places["PYTHONPATH"] = os.pathsep.join([str(with_shop / "src"), places["PYTHONPATH"]])
    command = [sys.executable, "-m", "tests.contract.new_field", str(with_shop / "root")]
    result = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=places, check=False)
    assert result.returncode == 0, result.stderr
    answers = json.loads(result.stdout)
    tools, commands = answers["tools"], answers["commands"]
    assert tools["schema"] == {"type": "string", "description": "what it belongs to"}
    assert tools["changed"] == ["shop"]
    assert tools["found"] == ["We bake at dawn"]
    assert tools["shown"][:2] == ["-", "mill"]
    assert tools["shown"][2].startswith("mill [redacted")
    assert "ghp" not in result.stdout
    assert commands["listed"] == ["We grind at noon", "We bake at dawn"]
    assert commands["found"] == ["We bake at dawn"]
    assert "  shop        bakery" in commands["shown"]
    assert "of this shop" in commands["help"]
