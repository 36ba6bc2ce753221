"""Hooks of `make site`: each page links to its source, which is copied next to the pages."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

SOURCES: Final = "sources"


def on_page_context(context: dict[str, Any], page: Any, **_: Any) -> dict[str, Any]:
    """Link a page to its source."""
    depth = page.file.src_uri.count("/")
    page.edit_url = f"{'../' * depth}{SOURCES}/{page.file.src_uri}.txt"
    return context


def on_post_build(config: Any) -> None:
    """Copy the sources of all pages."""
    docs = Path(config.docs_dir)
    for path in docs.rglob("*.md"):
        target = Path(config.site_dir, SOURCES, f"{path.relative_to(docs)}.txt")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
