"""Items and labels for the benchmark of pages: statements of LoCoMo, requests of CLINC150 with their domains."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.knowledge.pages.assignment import DeclaredTopic
from agent_memory.knowledge.pages.page import Footnote
from agent_memory.knowledge.pages.page_items import TopicItem
from agent_memory.models import derived_id

if TYPE_CHECKING:
    from pathlib import Path

LEAST_CHARS: Final = 25
LABELLED: Final = 250
OUTSIDE: Final = 50
"""Requests that belong to none of the topics, beside those that do."""
_STATEMENT: Final = re.compile(r"[^.!?\n]+[.!]+")
_SESSION: Final = re.compile(r"session_\d+")
_CATCH_ALL: Final = frozenset({"small_talk", "meta"})


@dataclass
class PagedTalk:
    """A conversation: the statements of each speaker as items, and the texts of its turns."""

    name: str
    speakers: dict[str, list[TopicItem]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


def load_talks(path: Path) -> list[PagedTalk]:
    """Return the conversations of LoCoMo."""
    return [_talk(data) for data in json.loads(path.read_text("utf-8"))]


def _talk(data: dict[str, Any]) -> PagedTalk:
    talk = PagedTalk(data["sample_id"])
    speakers = data["conversation"]["speaker_a"], data["conversation"]["speaker_b"]
    resource, label = derived_id("res-", talk.name), f"conversation of {speakers[0]} and {speakers[1]}"
    for session in filter(_SESSION.fullmatch, data["conversation"]):
        said_at = _moment(data["conversation"][f"{session}_date_time"])
        for turn in data["conversation"][session]:
            source = derived_id("epi-", talk.name, turn["dia_id"])
            talk.texts[source] = turn["text"]
            for found in _STATEMENT.finditer(turn["text"]):
                quote = found[0].strip()
                if len(quote) < LEAST_CHARS:
                    continue
                start = found.start() + found[0].index(quote)
                item = derived_id("mem-", source, start)
                note = Footnote(source, start, start + len(quote), quote, label, resource, item)
                text = f"{turn['speaker']}: {quote}"
                talk.speakers.setdefault(turn["speaker"], []).append(
                    TopicItem(item, text, note, f"{said_at:%Y-%m}", said_at, (said_at.timestamp(), len(talk.texts)))
                )
    return talk


def _moment(text: str) -> datetime:
    upper = text.replace(" am ", " AM ").replace(" pm ", " PM ")
    return datetime.strptime(upper, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def load_requests(folder: Path, phrases: int) -> tuple[list[DeclaredTopic], list[tuple[str, str]]]:
    """Return topics and labelled texts of CLINC150: its domains, each described by the names of its first intents.

    Two domains are left out that hold whatever fits nowhere else. A text outside has an empty label.

    Args:
        folder: Has `data_full.json` and `domains.json`.
        phrases: Of how many intents a description is made.
    """
    data = json.loads((folder / "data_full.json").read_text("utf-8"))
    domains = json.loads((folder / "domains.json").read_text("utf-8"))
    names = [name for name in domains if name not in _CATCH_ALL]
    declared = [DeclaredTopic(name, ", ".join(domains[name][:phrases]).replace("_", " ")) for name in names]
    domain_of = {intent: name for name in names for intent in domains[name]}
    inside = [(text, domain_of[intent]) for text, intent in data["test"] if intent in domain_of]
    outside = [(text, "") for text, _ in data["oos_test"]]
    chosen = random.Random(14)
    sample = chosen.sample(inside, LABELLED) + chosen.sample(outside, OUTSIDE)
    chosen.shuffle(sample)
    return declared, sample
