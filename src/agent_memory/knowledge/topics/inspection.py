"""Report on the folder with the pages of topics: what is no page, and what was moved out of the place of one. Reads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_memory.files.concerns import Concern
from agent_memory.files.entries import described, kind_of, size_of
from agent_memory.files.wording import counted, few
from agent_memory.knowledge.topics.file import topic_of
from agent_memory.knowledge.topics.saves import MAX_BYTES, NO_PAGE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def of_topics(folder: Path) -> Iterator[Concern]:
    """Look at the folder `topics` of an agent; of one that is missing there is nothing to tell."""
    kind = kind_of(folder, follow=True)
    if kind == "missing":
        return
    if kind != "folder":
        yield Concern(
            "topics_unusable",
            f"topics is {described(kind)} instead of a folder, so no page is written. Everything else works.",
            "Move it away; the next background work rebuilds the pages.",
        )
        return
    names = sorted(path.name for path in folder.iterdir())
    pages = [name for name in names if topic_of(name) and not why_not(folder / name)]
    aside = [name for name in names if NO_PAGE in name]
    odd = [name for name in names if name not in pages and name not in aside]
    if pages:
        yield Concern("topics", f"{counted(len(pages), 'file')} with pages.", size=size_of(folder))
    if aside:
        yield Concern(
            "topics_aside",
            f"{counted(len(aside), 'entry was', 'entries were')} no page and moved out of the place of one.",
            "Look through them; nothing reads them, and they may be removed.",
            details=few(aside),
        )
    if odd:
        yield Concern(
            "topics_odd",
            f"{counted(len(odd), 'entry', 'entries')} in topics/ can be no page.",
            "Move them elsewhere: a page of that name takes their place.",
            details=few([f"{name}: {why_not(folder / name) or 'not named as a page'}" for name in odd]),
        )


def why_not(path: Path) -> str:
    """Return why no page can be in an entry; empty if one can."""
    kind = kind_of(path)
    if kind != "file":
        return described(kind)
    if size_of(path) > MAX_BYTES:
        return "larger than 4 MiB"
    return "" if os.access(path, os.R_OK) else "not readable"
