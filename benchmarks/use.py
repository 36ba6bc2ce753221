"""What counting an access for each hit that is shown does to what is found, beside counting what somebody opens.

    python -m benchmarks.use --jsonl FILE ... [--vectors FILE.sqlite3] [--rounds 3]

Asks all questions of a set, in an order of its own, several times over, and prints the MRR of each round three times:
counting nothing, counting an access for each of the five hits shown, and counting one for the answer alone, as if
somebody had opened it. The first round is asked of a fresh memory, the last one after all others.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.embeddings import LocalEmbedder
from agent_memory.models import Memory
from agent_memory.storage import FileStorage
from benchmarks.retrieval.data import load_jsonl
from benchmarks.retrieval.metrics import interval
from benchmarks.retrieval.vectors import KeptVectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.embeddings import Embedder
    from benchmarks.retrieval.data import Group

_SHOWN: Final = 5
_DEPTH: Final = 100
COUNTED: Final = ("nothing", "what is shown", "the answer")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.use", description=__doc__.partition("\n")[0])
    parser.add_argument("--jsonl", type=Path, metavar="FILE", nargs="+", required=True)
    parser.add_argument("--vectors", type=Path, metavar="FILE.sqlite3", help="keeps what was embedded for the next run")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    embedder = KeptVectors(LocalEmbedder(), args.vectors)
    try:
        for path in args.jsonl:
            groups = load_jsonl(path)
            first: list[float] = []
            for counted in COUNTED:
                rounds = asyncio.run(measured(groups, counted, args.rounds, embedder))
                first = first or rounds[-1]
                print(f"{path.stem}: counting {counted}: MRR " + ", ".join(f"{interval(one)[0]:.3f}" for one in rounds))
                if rounds[-1] is not first:
                    change = interval([one - other for one, other in zip(rounds[-1], first, strict=True)])
                    print("   last round against counting nothing: {:+.3f}, {:+.3f} to {:+.3f}".format(*change))
    finally:
        embedder.close()
    return 0


async def measured(groups: Sequence[Group], counted: str, rounds: int, embedder: Embedder) -> list[list[float]]:
    """Return the reciprocal rank of each question's first answer, for each round, in the order of the set."""
    found: list[list[float]] = [[] for _ in range(rounds)]
    with tempfile.TemporaryDirectory() as folder:
        for number, group in enumerate(groups):
            storage = FileStorage(f"bench-{number}", folder, embedder=embedder, clock=partial(getattr, group, "now"))
            try:
                for at, ranks in enumerate(await _of_group(storage, group, counted, rounds)):
                    found[at] += ranks
            finally:
                await storage.close()
    return found


async def _of_group(storage: FileStorage, group: Group, counted: str, rounds: int) -> list[list[float]]:
    memories = [
        Memory(agent_id=storage.agent_id, content=item.text, timestamp=item.when, created_by_session=item.session)
        for item in group.items
    ]
    keys = {memory.id: item.key for memory, item in zip(memories, group.items, strict=True)}
    await storage.store_many(memories)
    await storage.prepare()
    shuffled, found = random.Random(7), []
    for _ in range(rounds):
        order = list(range(len(group.queries)))
        shuffled.shuffle(order)
        ranks = dict.fromkeys(order, 0.0)
        for at in order:
            query = group.queries[at]
            hits = [hit.memory.id for hit in await storage.search(query.text, limit=_DEPTH)]
            places = [place for place, one in enumerate(hits, 1) if keys[one] in query.gold]
            ranks[at] = 1 / places[0] if places else 0.0
            answer = [one for one in hits[:_SHOWN] if keys[one] in query.gold][:1]
            await storage.touch({COUNTED[0]: [], COUNTED[1]: hits[:_SHOWN], COUNTED[2]: answer}[counted])
        found.append([ranks[at] for at in sorted(ranks)])
    return found


if __name__ == "__main__":
    raise SystemExit(main())
