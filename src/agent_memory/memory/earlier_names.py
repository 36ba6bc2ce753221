"""`EarlierNames`: earlier names of the service's parts, until 1.0."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_STORAGE: Final = (
    "search", "troubles", "get", "count", "browse", "iter_all", "answer", "replaced_by", "older_versions",
    "surroundings", "linked_to", "forgotten_with", "nearest", "tally", "vectors_of", "changed_after", "valid_among",
    "texts_of", "linked_to_each", "gone_after", "health", "prepare", "embedding_status", "backend",
)  # fmt: skip
_PATHS: Final[Mapping[str, Mapping[str, str]]] = {
    "admin": {
        **{name: f"storage.{name}" for name in _STORAGE},
        "folder": "folder",
        "everything": "searcher.list_all",
        "find_similar": "searcher.find_similar",
        "known_category": "searcher.find_category",
        "considered": "writer.draft_capture",
        "compact": "writer.compact",
        "import_memories": "writer.import_memories",
        "import_traces": "writer.import_traces",
        "transfer": "writer.transfer",
    },
    "requests": {
        "find_candidates": "searcher.find_candidates",
        "preview": "searcher.preview",
        "preview_all": "searcher.preview_all",
        "forget": "writer.deletion.forget",
        "forget_all": "writer.deletion.forget_all",
        "one": "writer.deletion.forget_one",
        "many": "writer.deletion.forget_many",
        "get_restore_end": "writer.deletion.get_restore_end",
    },
    "disputes": {
        "undecided": "writer.conflicts.list_pairs",
        "how_many": "writer.conflicts.count",
        "decide": "writer.conflicts.decide",
        "restore_decisions": "writer.conflicts.restore_decisions",
        "look": "writer.finder.compare_all",
        "look_behind": "writer.finder.compare_stored",
    },
    "alerts": {"look_by": "monitor.set_checks", "look": "monitor.list_alerts", "times": "monitor.list_durations"},
    "watchers": {
        "add": "monitor.add_watcher",
        "remove": "monitor.remove_watcher",
        "tell": "monitor.notify_watchers",
    },
    "sources": {"add": "searcher.add_source"},
}
"""Paths from a service, by earlier part and name."""
_PARTS: Final = {"past": "history", "migration": "monitor.migration"}
"""Paths from a service, by earlier part."""


class _EarlierPart:
    """Part of a service under its earlier name."""

    def __init__(self, service: EarlierNames, paths: Mapping[str, str]) -> None:
        self._service, self._paths = service, paths

    def __getattr__(self, name: str) -> Any:
        if name not in self._paths:
            raise AttributeError(f"no attribute {name!r}; see docs/reference/python.md")
        return attrgetter(self._paths[name])(self._service)


class EarlierNames:
    """Earlier names of a service's parts, for programs of other people."""

    if not TYPE_CHECKING:  # a type checker would take it for every name there is

        def __getattr__(self, part: str) -> Any:
            if part in _PARTS:
                return attrgetter(_PARTS[part])(self)
            if part not in _PATHS:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {part!r}")
            return _EarlierPart(self, _PATHS[part])
