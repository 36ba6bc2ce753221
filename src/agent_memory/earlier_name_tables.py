"""Names of earlier versions with the present ones, until version 1.0.

The command line, settings, services, imports and `docs/reference/cli.md` use these tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

LAST_VERSION: Final = "1.0"
"""Version without the earlier names."""
COMMANDS: Final[Mapping[str, str]] = {
    "compact": "archive compact",
    "decrypt": "encryption off",
    "encrypt": "encryption on",
    "entities": "knowledge entities",
    "entity": "knowledge entity",
    "episodes": "knowledge episodes",
    "health": "agents health",
    "history": "show --history",
    "migrate": "index migrate",
    "promote": "pin --once",
    "pull": "index pull",
    "push": "index push",
    "reindex": "index rebuild",
    "rekey": "encryption rekey",
    "resources": "knowledge resources",
    "rollback": "index rollback",
    "stats": "agents stats",
    "summaries": "knowledge summaries",
    "suspects": "conflicts",
    "tidy": "archive tidy",
    "topic": "knowledge topic",
    "topics": "knowledge topics",
    "unpin": "pin --remove",
}
"""Present commands by earlier ones; a notice on stderr names the present one."""
RENAMED_SETTINGS: Final[Mapping[str, str]] = {"low_trust_tools": "untrusted_tools"}
"""Present settings by earlier ones; a warning names the present one."""
SETTINGS: Final[Mapping[str, str]] = {
    "cache_ttl_seconds": "memories are read from the journal, which is always current, so nothing has to expire",
}
"""Settings without effect, with the reason for the warning."""
JSON_KEYS: Final[Mapping[str, tuple[str, object]]] = {
    "answer_confidence": ("search", None),
    "for_model": ("status", 0),
    "model_failures": ("status", 0),
    "not_known": ("search", None),
}
"""Keys of `--json` that earlier versions filled, each with its command and constant value."""
MODULES: Final[Mapping[str, str]] = {
    "agent_memory.doctor": "agent_memory.care.checks",
    "agent_memory.entities": "agent_memory.knowledge.entities",
    "agent_memory.knowledge.entities.merging": "agent_memory.knowledge.entities.merges",
    "agent_memory.knowledge.working": "agent_memory.knowledge.pipeline.background_work",
    "agent_memory.lifecycle.archive": "agent_memory.care.archive",
    "agent_memory.lifecycle.backups": "agent_memory.care.backups",
    "agent_memory.lifecycle.health": "agent_memory.care.checks",
    "agent_memory.lifecycle.statistics": "agent_memory.care.statistics",
    "agent_memory.lifecycle.tidying": "agent_memory.care.tidying",
    "agent_memory.privacy.account": "agent_memory.care.account",
    "agent_memory.privacy": "agent_memory.care.privacy",
}
"""Present modules by earlier ones. Modules below them are found as well."""
_STORAGE: Final = (
    "search", "troubles", "get", "count", "browse", "iter_all", "answer", "replaced_by", "older_versions",
    "surroundings", "linked_to", "forgotten_with", "nearest", "tally", "vectors_of", "changed_after", "valid_among",
    "texts_of", "linked_to_each", "gone_after", "health", "prepare", "embedding_status", "backend",
)  # fmt: skip
SERVICE_PARTS: Final[Mapping[str, str]] = {"past": "history", "migration": "monitor.migration"}
"""Paths from a service, by earlier part."""
SERVICE_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
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
        "tell": "monitor.withdraw",
    },
    "sources": {"add": "searcher.add_source"},
}
"""Paths from a service, by earlier part and name."""


def build_notice(command: str) -> str:
    """Return the notice for an earlier command."""
    return f"`agent-memory {command}` is now `agent-memory {COMMANDS[command]}`; it works until version {LAST_VERSION}."


def get_earlier_keys(command: str) -> dict[str, object]:
    """Return the keys that only programs of earlier versions read."""
    return {key: value for key, (name, value) in JSON_KEYS.items() if name == command}
