"""Sources of an import made of texts."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.knowledge.bulk_import import choose_format
from agent_memory.knowledge.import_formats import read_parts, take_sample
from agent_memory.knowledge.sources.source_files import open_source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Read = Callable[..., list[tuple[str, Any]]]


def to_text(content: Any) -> str:
    """Return a text as it is, and a value as JSON."""
    return content if isinstance(content, str) else json.dumps(content)


def write_zip(path: Path, files: dict[str, Any]) -> Path:
    """Write an archive of texts."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, to_text(content))
    return path


def write_files(folder: Path, files: dict[str, Any]) -> Path:
    """Write texts below a folder, and return it."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_text(content), encoding="utf-8")
    return folder


def read_source(path: Path, form: str | None = None) -> list[tuple[str, Any]]:
    """Return format and part of everything in a source."""
    tree = open_source(str(path))
    chosen = [(choose_format(take_sample(file, tree), form), file) for file in tree.files.values()]
    return [(known.name, part) for known, file in chosen if known for part in read_parts(known, file, tree)]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that gives format and part of everything in some files."""

    def read_files(files: dict[str, Any], form: str | None = None, *, zipped: bool = False) -> list[tuple[str, Any]]:
        if zipped:
            return read_source(write_zip(tmp_path / "source.zip", files), form)
        return read_source(write_files(tmp_path / "source", files), form)

    return read_files
