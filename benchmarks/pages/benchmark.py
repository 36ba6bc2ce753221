"""Measure what page rewrites lose, and how requests are filed.

    python -m benchmarks.pages --locomo FILE [--clinc FOLDER] [--rounds 20] [--seed 14] [--json]

**Pages.** The statements of each speaker of a conversation have a page. Each page is rebuilt again and again, through
its files, while items are added, changed, superseded and their sources forgotten at random, and a person edits it now
and then and takes what is proposed:

- lost: items of the page before, or of the topic, that are neither on the page nor named as dropped
- unresolved: footnotes whose quote is not what stands at their place in a source that lives
- by hand: lines a person wrote that are gone
- parts above the tokens of one

**Filing.** With `--clinc`, 300 requests of CLINC150 (github.com/clinc/oos-eval, CC BY 3.0): 250 of
its domains, 50 of none; right is the domain, or none for those. The floor was chosen on the half `seen`.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.embeddings import LocalEmbedder
from agent_memory.knowledge.pages.assignment import nearest
from agent_memory.knowledge.pages.page import MAX_TOKENS, Page, count_tokens, split
from agent_memory.knowledge.pages.page_files import TopicFiles
from agent_memory.knowledge.pages.page_items import consolidate
from agent_memory.models import derived_id
from benchmarks.harness import build_parser, open_scratch, print_report
from benchmarks.pages.data import PagedTalk, load_requests, load_talks

if TYPE_CHECKING:
    from agent_memory.knowledge.pages.assignment import Embed
    from agent_memory.knowledge.pages.page_items import TopicItem

EDITED_EVERY: Final = 7
_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class TopicWorld:
    """A topic whose items come and go."""

    waiting: list[TopicItem]
    texts: dict[str, str]
    chance: random.Random
    live: dict[str, TopicItem] = field(default_factory=dict)

    def step(self) -> None:
        """Add, change, supersede items and forget sources, a few of each."""
        for item in [self.waiting.pop() for _ in range(min(len(self.waiting), self.chance.randint(0, 20)))]:
            if item.note.source in self.texts:
                self.live[item.id] = item
        for item in self._some(2):
            self.live[item.id] = replace(item, text=f"{item.text} It was put right later, {self.chance.random()}.")
        for item in self._some(2):
            new = replace(item, id=(new_id := derived_id("mem-", item.id)), note=replace(item.note, item=new_id))
            del self.live[item.id]
            self.live[new_id] = new
        for item in self._some(2):
            self.texts.pop(item.note.source, None)
            source = item.note.source
            for neighbor in [candidate for candidate in self.live.values() if candidate.note.source == source]:
                del self.live[neighbor.id]

    def _some(self, most: int) -> list[TopicItem]:
        return self.chance.sample(sorted(self.live.values(), key=lambda item: item.id), min(most, len(self.live)))


def rewritten(world: TopicWorld, title: str, rounds: int, folder: Path) -> Counter[str]:
    """Make one page anew `rounds` times and return the counts."""
    files, counts, rendered, own_lines = TopicFiles(folder), Counter[str](), Page(title), list[str]()
    page = rendered
    for number in range(1, rounds + 1):
        world.step()
        saved = files.read("topic")
        if number % EDITED_EVERY == 0 and saved is not None:
            own_lines.append(f"A line by hand, number {number}.")
            first = folder / "topic.md"
            text = first.read_text("utf-8")
            place = text.find("\n## ") if world.chance.random() < 1 / 2 else -1  # else behind all of it
            line = own_lines[-1]
            first.write_text(f"{text[:place]}\n{line}\n{text[place:]}" if place > 0 else text + line, "utf-8")
            saved = files.read("topic")
        before = saved.page if saved is not None else page
        items = list(world.live.values())
        world.chance.shuffle(items)
        is_edited = saved is not None and saved.is_edited
        now = _NOW + timedelta(hours=number)
        made = consolidate(before, items, now=now, rendered=rendered if is_edited else None)
        dropped_ids = {dropped.item for dropped in made.dropped}
        counts["lost"] += len({*before.items, *world.live} - {*made.page.items, *dropped_ids})
        counts["dropped"] += len(dropped_ids)
        if made.is_proposal:  # and the person takes it
            for name in saved.contents if saved else {}:
                (folder / name).unlink()
            saved = None
        counts["refused"] += not files.write("topic", made.page, "A topic of the benchmark.", saved)
        _look(files, world, own_lines, counts)
        page = rendered = made.page
    counts["claims"] += len(page.claims)
    return counts


def _look(files: TopicFiles, world: TopicWorld, own: list[str], counts: Counter[str]) -> None:
    """Count what is wrong on the page as it lies there."""
    saved = files.read("topic")
    assert saved is not None
    page = saved.page
    counts["rewrites"] += 1
    counts["footnotes"] += len(page.notes)
    counts["unresolved"] += sum(
        world.texts.get(note.source, "")[note.start : note.end] != note.quote for note in page.notes
    )
    counts["without a footnote"] += sum(not claim.notes for claim in page.claims)
    shown = "\n".join(content.decode() for content in saved.contents.values())
    counts["by hand lost"] += sum(line not in shown for line in own)
    counts["too long"] += sum(count_tokens(part) > MAX_TOKENS and len(part.claims) > 1 for part in split(page))


def pages_of(talk: PagedTalk, rounds: int, seed: int) -> Counter[str]:
    """Return the counts over the pages of all speakers of a conversation."""
    total = Counter[str]()
    for name, items in talk.speakers.items():
        chance = random.Random(f"{seed} {talk.name} {name}")
        waiting = list(items)
        chance.shuffle(waiting)
        with open_scratch() as folder:
            total += rewritten(TopicWorld(waiting, dict(talk.texts), chance), name, rounds, folder)
        total["pages"] += 1
    return total


def requests_filed(folder: Path, phrases: int, embed: Embed | None) -> dict[str, dict[str, float]]:
    """Return the shares of rightly filed requests, for each half."""
    declared, sample = load_requests(folder, phrases)
    names = nearest([text for text, _ in sample], declared, embed)
    right = [name == label for name, (_, label) in zip(names, sample, strict=True)]
    none = [not name for name in names]
    half = len(sample) // 2
    return {"seen": _shares(right[:half], none[:half]), "unseen": _shares(right[half:], none[half:])}


def _shares(right: list[bool], unfiled: list[bool]) -> dict[str, float]:
    return {
        "labelled": len(right),
        "right": round(sum(right) / len(right), 3),
        "unfiled": round(sum(unfiled) / len(right), 3),
    }


def main() -> None:
    """Measure and print."""
    parser = build_parser("pages", __doc__, "--rounds", "--seed", "--json", rounds=20, seed=14)
    parser.add_argument("--locomo", type=Path, required=True)
    parser.add_argument("--clinc", type=Path)
    options = parser.parse_args()
    report: dict[str, object] = {}
    for talk in load_talks(options.locomo):
        report[f"pages {talk.name}"] = dict(pages_of(talk, options.rounds, options.seed))
    if options.clinc:
        embedder = LocalEmbedder()
        for phrases in (6, 15):
            for way, embed in (("vectors", embedder.embed_documents), ("words", None)):
                report[f"filing clinc, {phrases} phrases, {way}"] = requests_filed(options.clinc, phrases, embed)
    print_report(report, as_json=options.json)
