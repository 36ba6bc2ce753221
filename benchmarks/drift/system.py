"""Answers of a memory system to a drift world, and the replay of a world."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.drift.baselines import TfIdf
    from benchmarks.drift.product import ProductSystem


@dataclass(frozen=True)
class ShownNote:
    """One note as it was shown.

    Attributes:
        text: Exactly what the reader sees of it.
        created_at: When it was written, in seconds since 1970; None where the system keeps no such time.
        tombstone: It only says that something was put to rest.
        neighbors: Keys of notes shown with it.
    """

    key: str
    text: str
    created_at: float | None = None
    tombstone: bool = False
    neighbors: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecallAnswer:
    """The answer to a question; `declined` says that what was asked is not in memory."""

    hits: tuple[ShownNote, ...] = ()
    declined: bool = False


@dataclass(frozen=True)
class SuspectPair:
    """Two notes that need a look; the hints `entailment` and `neutral` wave it through.

    `is_similar` is True for notes that are only listed as similar: nothing says that they conflict.
    """

    a: str
    b: str
    hint: str | None = None
    is_similar: bool = False


@dataclass(frozen=True)
class WriteAnswer:
    """Answer to a write.

    Attributes:
        matched: The note that it was taken for, instead of being stored.
        released: It says that this was put to rest before.
        suspects: Pairs that it names.
        similar: Keys of the existing notes to compare with, the most similar first.
    """

    matched: str | None = None
    released: bool = False
    suspects: tuple[SuspectPair, ...] = ()
    similar: tuple[str, ...] = ()


@dataclass(frozen=True)
class SystemAbilities:
    """Abilities of a system; a family that needs more counts as failed."""

    suspects: bool = False
    trace: bool = False
    temporal: bool = True


@dataclass
class SystemReplies:
    """Answers of a system to one world, by step ID.

    Attributes:
        queue: All pairs that it named, in its queue and in answers to writes.
        standing_tokens: Of the text that stands in every prompt.
    """

    recalled: dict[str, RecallAnswer] = field(default_factory=dict)
    written: dict[str, WriteAnswer] = field(default_factory=dict)
    lineage: dict[str, list[str] | None] = field(default_factory=dict)
    queue: list[SuspectPair] = field(default_factory=list)
    standing_tokens: int = 0


async def replay(world: dict[str, Any], system: ProductSystem | TfIdf) -> SystemReplies:
    """Tell a system all that a world has to tell, in order, and keep its replies."""
    replies = SystemReplies()
    for step in world["ops"]:
        await _step(step, system, replies)
    return replies


async def _step(step: dict[str, Any], system: ProductSystem | TfIdf, replies: SystemReplies) -> None:
    name = step.get("id", "")
    match step["op"]:
        case "inscribe":
            written = await system.inscribe(step["record"], step["mode"])
            replies.queue += written.suspects
            if name:
                replies.written[name] = written
        case "supersede":
            replies.queue += (await system.supersede(step["old"], step["new"])).suspects
        case "recall":
            window = step.get("window")
            limits = (window["after"], window["before"]) if window else None
            replies.recalled[name] = await system.recall(step["query"], step["k"], limits)
        case "recall_path":
            replies.recalled[name] = await system.recall_path(step["path"], step["k"])
        case "lineage":
            replies.lineage[name] = await system.lineage(step["key"])
        case "suspects":
            replies.queue += await system.suspects()
        case _:
            await _told(step, system)


async def _told(step: dict[str, Any], system: ProductSystem | TfIdf) -> None:
    """Apply a step without an answer."""
    match step["op"]:
        case "link":
            await system.link(step["from"], step["to"], step["verb"])
        case "settle":
            await system.settle()
        case "release":
            await system.release(step["key"], step["reason"])
        case "purge":
            await system.purge(step["key"])
        case other:
            raise ValueError(f"a world with a step {other!r} is of another format")
