"""Measure how well names in conversations are found, with precision first.

    python -m benchmarks.entities [--realtalk DIR] [--locomo FILE] [--json]

DIR has the chats of `danny911kr/REALTALK` (`data/Chat_*.json`), FILE conversations of LoCoMo (`locomo10.json`, or a
part of it). They are not part of this repository. `benchmarks/entities/names-in-talk.jsonl` says where names are in 700
turns, by the hash of a turn. A language model labelled them before it saw what the rules find there; what they find
wrongly was looked at while the rules were made. About two thirds of the turns are a random sample; the others were
drawn from turns with a capital inside a sentence, so that there are more names.

Each conversation is read from its first to its last turn, as ingestion reads it. A name counts where both ends are
right. Speakers' own names, which others address them by, are also counted apart. Intervals are of 95 in 100, over turns
drawn again. Ends with 1 if the precision is below .92 or the recall below .40.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.knowledge.entities.entity_drafts import EntityMatcherIndex, extract_entities, resolve
from agent_memory.knowledge.entities.name_finder import LOWERCASE
from agent_memory.knowledge.pipeline.ingestion_config import EntityDeduplicationConfig
from agent_memory.models import Episode
from benchmarks.entities.baselines import BASELINES
from benchmarks.harness import build_parser, print_report, read_jsonl, resample

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Span = tuple[int, int]
    Turn = tuple[str, str]

LABELS: Final = Path(__file__).with_name("names-in-talk.jsonl")
WANTED: Final = {"precision": 0.92, "recall": 0.40}
SETS: Final = ("REALTALK", "LoCoMo")
_MOMENT: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LabelledTurn:
    """A turn, the names in it, and what was found."""

    text: str
    names: frozenset[Span]
    found: frozenset[Span]


def load_realtalk(folder: Path) -> dict[str, list[Turn]]:
    """Return speaker and text of each turn, by chat."""
    chats: dict[str, list[Turn]] = {}
    for path in sorted((folder / "data").glob("Chat_*.json")):
        chat = json.loads(path.read_text(encoding="utf-8"))
        keys = [key for key in chat if key.startswith("session_") and key.removeprefix("session_").isdigit()]
        ordered = sorted(keys, key=lambda key: int(key.removeprefix("session_")))
        turns = [turn for key in ordered for turn in chat[key]]
        chats[path.stem] = [(turn["speaker"], turn.get("clean_text") or turn.get("text") or "") for turn in turns]
    return chats


def load_locomo(file: Path) -> dict[str, list[Turn]]:
    """Return speaker and text of each turn, by conversation."""
    talks: dict[str, list[Turn]] = {}
    for sample in json.loads(file.read_text(encoding="utf-8")):
        talk = sample["conversation"]
        keys = [key for key in talk if key.startswith("session_") and isinstance(talk[key], list)]
        ordered = sorted(keys, key=lambda key: int(key.removeprefix("session_")))
        talks[sample["sample_id"]] = [(turn["speaker"], turn["text"]) for key in ordered for turn in talk[key]]
    return talks


def find_as_ingested(turns: Sequence[Turn]) -> list[frozenset[Span]]:
    """Return the shown names of each turn after the whole conversation."""
    matcher = EntityMatcherIndex([], "", EntityDeduplicationConfig())
    read = []
    for order, (speaker, text) in enumerate(turns):
        episode = Episode(agent_id="bench", content=text or " ", role="user", speaker=speaker, order=order)
        result = extract_entities(text, speaker=speaker, gazetteer=matcher.gazetteer, least="low")
        resolve(episode, result, matcher, _MOMENT)
        read.append([entity for entity in result.entities if entity.end and entity.rule != LOWERCASE])
    shown_names = []
    for entities in read:
        named = [(entity, matcher.find_entity(entity.name)) for entity in entities]
        shown = [entity for entity, record in named if record is not None and matcher.evidence.is_shown(record)]
        shown_names.append(frozenset((entity.start, entity.end) for entity in shown))
    return shown_names


def label_turns(
    name: str, talks: dict[str, list[Turn]], find: Callable[[Sequence[Turn]], list[frozenset[Span]]]
) -> dict[str, list[LabelledTurn]]:
    """Return all labelled turns of a set, and the random sample.

    Raises:
        ValueError: The text of a labelled turn is another one than that of the labels.
    """
    names_by_talk = {key: find(turns) for key, turns in talks.items()}
    parts: dict[str, list[LabelledTurn]] = {"all": [], "random": []}
    for row in read_jsonl(LABELS):
        if row["set"] != name or row["conversation"] not in talks:
            continue
        text = talks[row["conversation"]][row["turn"]][1]
        if hashlib.sha256(text.encode()).hexdigest()[:16] != row["sha256"]:
            raise ValueError(f"turn {row['turn']} of {row['conversation']} has another text; use the published files")
        names = frozenset((start, end) for start, end in row["names"])
        turn = LabelledTurn(text, names, names_by_talk[row["conversation"]][row["turn"]])
        parts["all"].append(turn)
        if row["random"]:
            parts["random"].append(turn)
    return parts


def drop_speakers(turns: Sequence[LabelledTurn], speakers: frozenset[str]) -> list[LabelledTurn]:
    """Return turns without the names of the speakers, whole or a part."""

    def keep(text: str, spans: frozenset[Span]) -> frozenset[Span]:
        return frozenset(span for span in spans if text[slice(*span)] not in speakers)

    return [LabelledTurn(turn.text, keep(turn.text, turn.names), keep(turn.text, turn.found)) for turn in turns]


def measure(turns: Sequence[LabelledTurn]) -> dict[str, float]:
    """Return precision, recall, and the numbers behind them."""
    right = sum(len(turn.names & turn.found) for turn in turns)
    found_count, name_count = sum(len(turn.found) for turn in turns), sum(len(turn.names) for turn in turns)
    counts = {"wrong": found_count - right, "right": right, "there": name_count}
    return {"precision": right / max(found_count, 1), "recall": right / max(name_count, 1), **counts}


def measure_rate(name: str, turns: Sequence[LabelledTurn]) -> float:
    """Return precision or recall."""
    return measure(turns)[name]


def add_intervals(turns: Sequence[LabelledTurn], resamples: int) -> dict[str, Any]:
    """Return the measures with intervals, over turns drawn again."""
    row = dict[str, Any](measure(turns))
    for rate in WANTED:
        drawn = resample(turns, partial(measure_rate, rate), resamples, seed=0)
        row[f"{rate}_interval"] = (drawn[int(0.025 * resamples)], drawn[max(int(0.975 * resamples) - 1, 0)])
    return row


def report(name: str, talks: dict[str, list[Turn]], resamples: int = 1_000) -> dict[str, Any]:
    """Return the rows of a set and CPU time per turn."""
    begun = time.process_time()
    parts = label_turns(name, talks, find_as_ingested)
    spent = (time.process_time() - begun) / sum(map(len, talks.values())) * 1000
    speakers = frozenset(
        word for turns in talks.values() for speaker, _ in turns for word in (speaker, *speaker.split())
    )
    rows = {
        "names": add_intervals(parts["all"], resamples),
        "random sample": add_intervals(parts["random"], resamples),
        "without speakers": add_intervals(drop_speakers(parts["all"], speakers), resamples),
    }
    for label, baseline in BASELINES.items():
        spans = [frozenset(span[:2] for span in baseline(turn.text)) for turn in parts["all"]]
        rows[label] = add_intervals(
            [LabelledTurn(turn.text, turn.names, span) for turn, span in zip(parts["all"], spans, strict=True)],
            resamples,
        )
    return {"turns": len(parts["all"]), "cpu_ms_per_turn": round(spent, 2), "rows": rows}


def main() -> int:
    """Measure, print; return the exit status."""
    parser = build_parser("entities", __doc__, "--locomo", "--json")
    parser.add_argument("--realtalk", type=Path, default=None)
    options = parser.parse_args()
    talks = {"REALTALK": options.realtalk and load_realtalk(options.realtalk)}
    talks["LoCoMo"] = options.locomo and load_locomo(options.locomo)
    reports = {name: report(name, talks[name]) for name in SETS if talks[name]}
    print_report(reports, as_json=options.json)
    measured = [rows["rows"]["names"] for rows in reports.values()]
    return int(any(row[rate] < least for row in measured for rate, least in WANTED.items()))
