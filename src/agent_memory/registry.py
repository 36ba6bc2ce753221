"""Kinds of record and feature packages, by files and dotted names.

Core imports no feature package. It looks up which files exist in the folder of an agent, and loads a function of a
feature package when one of its files exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

CORE: Final = "agent_memory"
_KNOWLEDGE: Final = "agent_memory.knowledge"
_ARCHIVE: Final = "agent_memory.care.archive"
NOT_CLEANED: Final = "not cleaned: "
"""How a sentence of a receipt begins that names a file which a purge could not clean."""


class RegisteredKind(NamedTuple):
    """One kind of record.

    Attributes:
        file: Name of its journal in an agent's folder.
        place: Where its `Kind` is, as `module:NAME`.
        package: Package that makes and reads its records.
    """

    file: str
    place: str
    package: str = CORE


KINDS: Final[Mapping[str, RegisteredKind]] = {
    "memory": RegisteredKind("memories.yaml", "agent_memory.models.memory:MEMORY"),
    "resource": RegisteredKind("knowledge.yaml", "agent_memory.models.knowledge:RESOURCE", _KNOWLEDGE),
    "topic": RegisteredKind("knowledge.yaml", "agent_memory.models.knowledge:TOPIC", _KNOWLEDGE),
    "episode": RegisteredKind("episodes.yaml", "agent_memory.models.knowledge:EPISODE", _KNOWLEDGE),
    "stage_mark": RegisteredKind("tasks.yaml", "agent_memory.models.knowledge:MARK"),
    "entity": RegisteredKind("entities.yaml", "agent_memory.models.knowledge:ENTITY", _KNOWLEDGE),
    "mentions": RegisteredKind("entities.yaml", "agent_memory.models.knowledge:MENTIONS", _KNOWLEDGE),
    "relation": RegisteredKind("entities.yaml", "agent_memory.models.knowledge:RELATION", _KNOWLEDGE),
    "summary": RegisteredKind("entities.yaml", "agent_memory.models.knowledge:SUMMARY", _KNOWLEDGE),
    "archived": RegisteredKind("archive.yaml", "agent_memory.care.archive_records:ARCHIVED", _ARCHIVE),
    "tidy_run": RegisteredKind("archive.yaml", "agent_memory.care.archive_records:TIDY_RUN", _ARCHIVE),
    "candidate": RegisteredKind("inbox.yaml", "agent_memory.models.memory:CANDIDATE"),
    "verbatim": RegisteredKind("verbatim.yaml", "agent_memory.models.verbatim:VERBATIM"),
}
"""Kinds of record by name, in the order in which they are examined."""


class RegisteredCheck(NamedTuple):
    """One check of the doctor that needs a feature package.

    Attributes:
        file: Name of the journal or folder that it examines.
        place: Where the check is, as `module:NAME`.
    """

    file: str
    place: str


CHECKS: Final[Mapping[str, RegisteredCheck]] = {
    "speakers": RegisteredCheck("episodes.yaml", "agent_memory.care.checks.journal_checks:examine_speakers"),
    "entities": RegisteredCheck("entities.yaml", "agent_memory.care.checks.journal_checks:examine_guesses"),
    "hidden_topics": RegisteredCheck("knowledge.yaml", "agent_memory.care.checks.journal_checks:examine_topics"),
    "topics": RegisteredCheck("topics", "agent_memory.care.checks.journal_checks:examine_pages"),
}
"""Checks of the doctor by name."""


def load_handler(place: str) -> Any:
    """Return the object at `module:NAME`.

    Raises:
        StorageError: A package that it needs is absent (`package_absent`).
    """
    try:
        return resolve_name(place)
    except ModuleNotFoundError as error:
        if not f"{error.name}.".startswith(f"{CORE}."):
            raise
        raise StorageError(
            f"The package {error.name} is absent, so its files were left as they are.",
            code="package_absent",
            recovery="Reinstall this package completely.",
        ) from error


@dataclass(frozen=True, slots=True)
class FeaturePackage:
    """A package that can be absent, and its functions for core.

    Attributes:
        package: Dotted name of the package.
        handlers: Functions and classes, as `.module:name` below the package or `:name` in it, by the name of their use.
    """

    package: str
    handlers: Mapping[str, str]

    @property
    def files(self) -> frozenset[str]:
        """Names of its journals."""
        return frozenset(kind.file for kind in KINDS.values() if kind.package == self.package)

    @property
    def is_installed(self) -> bool:
        """Return True if the package can be loaded."""
        try:
            return find_spec(self.package) is not None
        except ModuleNotFoundError:
            return False

    def has_files(self, folder: Path) -> bool:
        """Return True if one of its journals exists in an agent's folder."""
        return any((folder / name).exists() for name in self.files)

    def load(self, use: str) -> Any:
        """Return the function or class for a use.

        Raises:
            StorageError: The package is absent (`package_absent`).
        """
        return load_handler(f"{self.package}{self.handlers[use]}")


KNOWLEDGE: Final = FeaturePackage(
    _KNOWLEDGE,
    {
        "source": ".search_source:KnowledgeSource",
        "footnotes": ".pages.page_files:cut_edited",
        "records": ".records:Knowledge",
        "forgotten_texts": ".passages.forgotten_texts:ForgottenTexts",
        "statements": ".passages.forgotten_texts:find_statements",
    },
)
ARCHIVE: Final = FeaturePackage(
    _ARCHIVE, {"retention": ":archive_expired", "recall": ":recall_archived", "chains": ":load_chains"}
)
ENGINES: Final = FeaturePackage(
    "agent_memory.engines",
    {
        "server": ".server_storage:QdrantServerStorage",
        "vector": ".vector_storage:VectorStorage",
        "migratable": ".vector_storage:MigratableStorage",
    },
)
PRIVACY: Final = FeaturePackage("agent_memory.care.privacy", {"purging": ".purge:Purging"})
HEALTH: Final = FeaturePackage("agent_memory.care.checks", {"checks": ".health_checks:find_checks"})
FEATURES: Final = (KNOWLEDGE, ARCHIVE, ENGINES, PRIVACY, HEALTH)


def list_uncleaned(names: Collection[str]) -> list[str]:
    """Return sentences for journals that no installed package can clean, by name."""
    packages = {kind.file: kind.package for kind in KINDS.values()}
    absent = {feature.package for feature in FEATURES if not feature.is_installed}
    sentences = []
    for name in sorted(names):
        if name not in packages:
            sentences.append(f"{NOT_CLEANED}{name} (a journal of an unknown kind)")
        elif packages[name] in absent:
            sentences.append(f"{NOT_CLEANED}{name} (the package {packages[name]} is absent)")
    return sentences
