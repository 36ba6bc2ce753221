"""Measure what counting an access for each shown hit does to results, next to counting what is opened.

    python -m benchmarks.use --jsonl FILE ... [--vectors FILE.sqlite3] [--rounds 3]

Asks all questions of a set, in an order of its own, several times over, and prints the MRR of each round three times:
counting nothing, counting an access for each of the five hits shown, and counting one for the answer alone, as if
somebody had opened it. The first round is asked of a fresh memory, the last one after all others.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from functools import partial
from typing import TYPE_CHECKING, Final

from agent_memory.storage import FileStorage
from benchmarks.harness import build_parser, open_embedder, store_items
from benchmarks.retrieval.data import load_jsonl
from benchmarks.retrieval.metrics import interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.embeddings import Embedder
    from benchmarks.retrieval.data import QuestionGroup

_SHOWN: Final = 5
_DEPTH: Final = 100
COUNTED: Final = ("nothing", "what is shown", "the answer")


def main() -> int:
    """Measure and print."""
    args = build_parser("use", __doc__, "--jsonl", "--vectors", "--rounds", rounds=3).parse_args()
    with open_embedder("local", args.vectors) as embedder:
        assert embedder is not None
        for path in args.jsonl:
            groups = load_jsonl(path)
            first: list[float] = []
            for counted in COUNTED:
                rounds = asyncio.run(measured(groups, counted, args.rounds, embedder))
                first = first or rounds[-1]
                means = ", ".join(f"{interval(ranks)[0]:.3f}" for ranks in rounds)
                print(f"{path.stem}: counting {counted}: MRR {means}")
                if rounds[-1] is not first:
                    change = interval([rank - before for rank, before in zip(rounds[-1], first, strict=True)])
                    print("   last round against counting nothing: {:+.3f}, {:+.3f} to {:+.3f}".format(*change))
    return 0


async def measured(groups: Sequence[QuestionGroup], counted: str, rounds: int, embedder: Embedder) -> list[list[float]]:
    """Return the reciprocal rank of each question's first answer, for each round, in the order of the set."""
    result: list[list[float]] = [[] for _ in range(rounds)]
    with tempfile.TemporaryDirectory() as folder:
        for number, group in enumerate(groups):
            storage = FileStorage(f"bench-{number}", folder, embedder=embedder, clock=partial(getattr, group, "now"))
            try:
                for number_of_round, ranks in enumerate(await _ask_group(storage, group, counted, rounds)):
                    result[number_of_round] += ranks
            finally:
                await storage.close()
    return result


async def _ask_group(storage: FileStorage, group: QuestionGroup, counted: str, rounds: int) -> list[list[float]]:
    keys = await store_items(storage, group.items)
    shuffled, result = random.Random(7), []
    for _ in range(rounds):
        order = list(range(len(group.queries)))
        shuffled.shuffle(order)
        ranks = dict.fromkeys(order, 0.0)
        for position in order:
            query = group.queries[position]
            hits = [hit.memory.id for hit in await storage.search(query.text, limit=_DEPTH)]
            places = [place for place, memory_id in enumerate(hits, 1) if keys[memory_id] in query.gold]
            ranks[position] = 1 / places[0] if places else 0.0
            answer = [memory_id for memory_id in hits[:_SHOWN] if keys[memory_id] in query.gold][:1]
            await storage.touch({COUNTED[0]: [], COUNTED[1]: hits[:_SHOWN], COUNTED[2]: answer}[counted])
        result.append([ranks[position] for position in sorted(ranks)])
    return result


if __name__ == "__main__":
    raise SystemExit(main())
