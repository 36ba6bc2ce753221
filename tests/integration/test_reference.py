"""The written pages of the reference name what the code has: arguments of tools, files, keys of a declaration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agent_memory.files import names
from agent_memory.tools import ALL_TOOLS
from agent_memory.workspace.declaration import model

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
FILES = (REFERENCE / "files.md").read_text(encoding="utf-8")
ROWS = dict(
    re.findall(
        r"^\| `(memory_\w+)`[^|]* \| ([^|]*) \|",
        (REFERENCE / "tools.md").read_text(encoding="utf-8").partition("\n### Arguments")[0],
        re.MULTILINE,
    )
)
MODELS = (model.Table, model.Column, model.Phase, model.ToolSpec, model.LogTables, model.Declaration)


@pytest.mark.parametrize("tool", ALL_TOOLS, ids=lambda tool: tool.name)
def test_tools_page_has_the_arguments_of_a_tool(tool: Any) -> None:
    fields = tool.arguments_model.model_fields
    shown = set(tool(None).input_schema["properties"])
    assert shown <= set(fields)
    documented = dict(re.findall(r"`(\w+)`(?: \([^)]*\))?(\*?)", ROWS[tool.name]))
    assert {name for name in documented if name in fields} == set(fields)
    assert {name for name, mark in documented.items() if name in fields and not mark} == shown


def test_files_page_has_the_files_of_an_agent() -> None:
    suffixes = (".yaml", ".json", ".jsonl", ".sqlite3", ".key", ".encrypted", ".lock")
    files = {value for value in vars(names).values() if isinstance(value, str) and value.endswith(suffixes)}
    engine = {"build.lock", "holder.lock", "events.1.jsonl"}  # in the folder of an index; the older half of the log
    assert {file for file in files - engine if file not in FILES} == set()
    assert len(files) > 10


@pytest.mark.parametrize("declared", MODELS, ids=lambda declared: declared.__name__)
def test_files_page_has_the_keys_of_a_declaration(declared: Any) -> None:
    section = FILES.partition("\n## Workspace declaration\n")[2]
    keys = {field.alias or name for name, field in declared.model_fields.items()}
    assert {key for key in keys if f"`{key}`" not in section} == set()
