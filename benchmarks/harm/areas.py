"""Runners of `benchmarks.harm`: ask the product about an input, grade the act."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from typer.testing import CliRunner

from agent_memory.cli.app import build
from agent_memory.embeddings import LocalEmbedder
from agent_memory.knowledge.entities import Described
from agent_memory.knowledge.entities.matching import Matcher
from agent_memory.memories import FileStorage
from agent_memory.memory import MemoryService
from agent_memory.settings import ServiceSettings
from agent_memory.times import times_in
from benchmarks.harness import open_scratch
from benchmarks.retrieval.vectors import KeptVectors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from typer.testing import Result

_AGENT: Final = "harm"
_SHOWN: Final = 3
"""Results among which an answer counts as offered."""
_CANDIDATES: Final = 5
"""Candidates of a request among which the right one counts as offered."""
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class HarmFinding:
    """Grade of one input.

    Attributes:
        subject: The input in short.
        wrong: What was done wrong; empty if nothing.
        act: "done", "offered" or "missed"; empty if the right answer wants no act.
    """

    subject: str
    wrong: str = ""
    act: str = ""


class ProductUnderTest:
    """Empty memory of the product, with service and command line.

    Args:
        folder: Empty folder for its files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "memory"
        settings = ServiceSettings()
        storage = FileStorage(_AGENT, self.root, settings=settings, embedder=get_embedder())
        self.service = MemoryService(storage, settings)

    async def store(self, texts: list[str]) -> list[str]:
        """Store texts and return the IDs of their memories."""
        ids = [(await self.service.store(text)).memory.id for text in texts]
        await self.service.settle()
        await self.service.storage.prepare()
        return ids

    async def run_cli(self, *arguments: str) -> Result:
        """Run a command on this memory, in another thread of this process.

        Raises:
            Exception: What the command did not handle.
        """
        command = [*arguments, "--agent", _AGENT, "--root", str(self.root)]
        return await asyncio.to_thread(
            CliRunner().invoke, build(), command, prog_name="agent-memory", catch_exceptions=False
        )

    async def read_cli(self, *arguments: str) -> dict[str, Any]:
        """Return the JSON that a command prints; empty if it prints none."""
        output = (await self.run_cli(*arguments, "--json")).stdout
        parsed: dict[str, Any] = json.loads(output) if output.strip() else {}
        return parsed

    async def ingest(self, name: str, content: str) -> Result:
        """Write a file and ingest it."""
        path = self.folder / name
        path.write_text(content, "utf-8")
        return await self.run_cli("ingest", str(path))

    async def find_texts(self, query: str) -> list[str]:
        """Return the valid texts that `agent-memory search` shows, best first."""
        results = (await self.read_cli("search", query)).get("results", [])
        return [result["content"] for result in results if not result.get("superseded_by")]


@cache
def get_embedder() -> KeptVectors:
    """Return the local model, loaded once."""
    return KeptVectors(LocalEmbedder(), None)


@asynccontextmanager
async def open_product() -> AsyncIterator[ProductUnderTest]:
    """Open an empty memory and delete it at the end."""
    with open_scratch() as folder:
        product = ProductUnderTest(folder)
        try:
            yield product
        finally:
            await product.service.close()


async def grade_forgotten(product: ProductUnderTest, row: dict[str, Any]) -> HarmFinding:
    """List candidates of a request, then forget what `--yes` takes."""
    ids = await product.store(row["memories"])
    right = {ids[index] for index in row["right"]}
    candidates = await product.service.searcher.find_candidates(row["request"])
    offered = [candidate.memory.id for candidate in candidates.listed][:_CANDIDATES]
    await product.service.close()
    await product.run_cli("forget", *row["request"].split(), "--yes")
    live_ids = {memory["id"] for memory in (await product.read_cli("list", "--all"))["memories"]}
    lost = set(ids) - live_ids
    wrong = [text for text, memory_id in zip(row["memories"], ids, strict=True) if memory_id in lost - right]
    act = "" if not right else "done" if lost == right else "offered" if right <= set(offered) else "missed"
    return HarmFinding(row["request"], f"forgot {wrong}" if wrong else "", act)


async def grade_ranked(product: ProductUnderTest, row: dict[str, Any]) -> HarmFinding:
    """Search an exact name and check the first result."""
    ids = await product.store(row["memories"])
    results = (await product.service.search(row["query"])).near
    first = results[0].memory if results else None
    if first is None:
        return HarmFinding(row["query"], "", "missed")
    if first.id == ids[row["right"]]:
        return HarmFinding(row["query"], "", "done")
    offered = ids[row["right"]] in [hit.memory.id for hit in results[:_SHOWN]]
    return HarmFinding(row["query"], f"first is {first.content!r}", "offered" if offered else "missed")


async def grade_edited(product: ProductUnderTest, row: dict[str, Any]) -> HarmFinding:
    """Ingest two versions of a document and search the changed words."""
    await product.ingest(row["name"], row["before"])
    await product.ingest(row["name"], row["after"])
    shown = await product.find_texts(row["query"])
    stale = [text for text in shown if row["stale"] in text]
    current = row["current"]
    is_done = not stale if current is None else any(current in text for text in shown)
    return HarmFinding(row["query"], f"shown: {stale[0]!r}" if stale else "", "done" if is_done else "missed")


async def grade_dates(_: ProductUnderTest, row: dict[str, Any]) -> HarmFinding:
    """Read the days that a text names."""
    mentions = times_in(row["text"], datetime.fromisoformat(row["said"]))
    spans = [(mention.first_day, mention.end_day) for mention in mentions]
    resolved = [[day and str(day) for day in span] for span in spans if any(span)]
    wanted = [row["first"], row["end"]]
    right = [span for span in resolved if span[1] == wanted[1] and span[0] in {None, wanted[0]} and wanted[1]]
    wrong = f"read as {resolved}, not {wanted}" if resolved != right or len(right) > 1 else ""
    if not row["end"]:
        return HarmFinding(row["text"], wrong)
    return HarmFinding(row["text"], wrong, "done" if right else "offered" if spans and not resolved else "missed")


async def grade_offsets(product: ProductUnderTest, row: dict[str, Any]) -> HarmFinding:
    """Ingest a message with an offset and read the day shown."""
    messages = [{"speaker": name, "text": text, "timestamp": row["said"]} for name, text in _talk(row["text"])]
    await product.ingest("talk.jsonl", "\n".join(json.dumps(message) for message in messages))
    lines = (await product.run_cli("search", row["text"])).stdout.splitlines()
    position = next((number for number, line in enumerate(lines) if row["text"] in line), None)
    days = set() if position is None else set(_DAY.findall("\n".join(lines[position : position + 2])))
    day = row["said"][:10]
    wrong = days - {day, row["first"]}
    act = "done" if row["first"] in days else "offered" if day in days else "missed"
    return HarmFinding(f"{row['text']} {row['said']}", f"shown with {sorted(wrong)}" if wrong else "", act)


def _talk(text: str) -> list[tuple[str, str]]:
    return [("Noa", text), ("Uri", "All right then.")]


async def grade_entities(_: ProductUnderTest, row: dict[str, Any]) -> HarmFinding:
    """Compare two names and check whether they are merged."""
    first, second, kind = row["first"], row["second"], row["type"]
    match = Matcher([("e1", Described(first, kind, {}))]).find(Described(second, kind, {}))
    decision = None if match is None else match.decision
    is_merged = decision == "merge"
    act = "" if not row["same"] else "done" if is_merged else "missed" if decision is None else "offered"
    return HarmFinding(f"{first} / {second}", "merged" if is_merged and not row["same"] else "", act)


async def grade_duplicates(product: ProductUnderTest, row: dict[str, Any]) -> HarmFinding:
    """Store two texts and check whether the second is dropped."""
    await product.service.store(row["first"])
    is_dropped = (await product.service.store(row["second"])).duplicate
    wrong = "the second is dropped" if is_dropped and not row["same"] else ""
    return HarmFinding(f"{row['first']} / {row['second']}", wrong, "done" if is_dropped == row["same"] else "missed")


async def grade_exports(product: ProductUnderTest, row: dict[str, Any]) -> HarmFinding:
    """Ingest conversations and check turns, days and reported losses."""
    result = await product.ingest(row["file"], row["content"])
    episodes = (await product.read_cli("episodes", "--all")).get("episodes", [])
    turns = [(turn["content"], turn["timestamp"][:10]) for turn in episodes]
    problems, lost = [], 0
    for words, day in row["turns"]:
        days = [turn_day for content, turn_day in turns if words in content]
        lost += not days and not any(words in text for text in await product.find_texts(words))
        problems += [f"{words!r} is dated {days}"] if days and day and day not in days else []
    problems += [f"{words!r} is shown" for words in row["absent"] if any(words in content for content, _ in turns)]
    is_reported = result.exit_code == 1 and bool(result.stderr.strip())
    if (lost or row["reported"]) and not is_reported:
        problems.append("loss without a report")
    return HarmFinding(row["name"], "; ".join(problems), "missed" if problems or lost else "done")


async def grade_denied(product: ProductUnderTest, row: dict[str, Any]) -> HarmFinding:
    """Ask a question and check match and results."""
    ids = await product.store(row["memories"])
    answer = await product.service.search(row["question"])
    if row["right"] is None:
        return HarmFinding(row["question"], "a strong match" if answer.match == "strong" else "")
    shown = [hit.memory.id for hit in answer.near]
    right = ids[row["right"]]
    act = "done" if shown[:1] == [right] else "offered" if right in shown[:_SHOWN] else "missed"
    return HarmFinding(row["question"], "denied" if answer.match in {"none", None} else "", act)


async def grade_pairs(product: ProductUnderTest, row: dict[str, Any]) -> HarmFinding:
    """Store two memories among others and check the report."""
    older = (await product.store([row["older"], *row.get("background", ())]))[0]
    stored = await product.service.store(row["newer"])
    await product.service.settle()
    is_reported = bool(stored.suspects or await product.service.suspects())
    subject = f"{row['older']} / {row['newer']}"
    if row["want"] == "none":
        return HarmFinding(subject, "reported" if is_reported else "")
    offered = older in [memory.id for memory in stored.similar]
    return HarmFinding(subject, "", "done" if is_reported else "offered" if offered else "missed")


async def grade_relations(product: ProductUnderTest, row: dict[str, Any]) -> HarmFinding:
    """Ingest two messages and check the relations of their speaker."""
    messages = [{"speaker": name, "text": text, "timestamp": time} for name, text, time in row["messages"]]
    await product.ingest("talk.jsonl", "\n".join(json.dumps(message) for message in messages))
    moments = (await product.read_cli("entity", row["entity"])).get("timeline", [])
    relations = [moment for moment in moments if moment["other"]]
    invented = [(moment["what"], moment["other"]) for moment in relations]
    wrong = [f"invented {relation}" for relation in invented if list(relation) not in row["true"]]
    closed = [bool(moment["until"]) for moment in relations if moment["other"] == row["ended"]]
    wrong += [f"{row['ended']} is still open"] * closed.count(False)
    is_quoted = any(row["messages"][2][1] in moment["text"] for moment in moments)
    act = "" if row["ended"] is None else "done" if any(closed) else "offered" if is_quoted else "missed"
    return HarmFinding(row["messages"][2][1], "; ".join(wrong), act)


RUNNERS: Final[dict[str, Callable[[ProductUnderTest, dict[str, Any]], Awaitable[HarmFinding]]]] = {
    "forgotten": grade_forgotten,
    "ranked": grade_ranked,
    "edited": grade_edited,
    "dates": grade_dates,
    "offsets": grade_offsets,
    "entities": grade_entities,
    "duplicates": grade_duplicates,
    "exports": grade_exports,
    "denied": grade_denied,
    "pairs": grade_pairs,
    "relations": grade_relations,
}
