"""Every reader of foreign text as a function of the text, and texts that readers of that kind are slow on.

Run as a program: `python -m tests.hostile.readers [--deep] [--only NAME]`. It prints one JSON line per reader and text.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from agent_memory.capture import Extractor
from agent_memory.capture.typed_text import list_own_sentences, read_teammate_statements
from agent_memory.knowledge.entities import find_mentions
from agent_memory.knowledge.entities.name_finder import find_identifiers
from agent_memory.knowledge.intake.document_index import read_front_matter
from agent_memory.knowledge.intake.file_formats import read_transcript
from agent_memory.knowledge.pages.page import parse
from agent_memory.knowledge.passages.items import SpokenTurn, cut_turn, split_turns
from agent_memory.knowledge.passages.sections import cut_passages
from agent_memory.knowledge.summaries import SummaryTurn, choose_quotes
from agent_memory.language.similarity import find_conflict
from agent_memory.language.text_forms import excerpt
from agent_memory.language.words import query_terms
from agent_memory.memory.forget_service import list_names, read_ownership, read_request_ownership
from agent_memory.redaction import SecretRedactor
from agent_memory.settings import CaptureSettings
from agent_memory.times import read_periods, times_in
from tests.hostile.pumps import LIMIT, PumpedText, is_suspicious, measure_slope
from tests.support import NOON, memory_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.models import Memory

FLOOR = 0.02
"""Seconds for the longest text below which a reader counts as linear."""
MOST_OF_A_MEMORY = 10_000
"""Characters: a longer memory is not stored."""


def _make_memory(text: str) -> Memory:
    return memory_of(text.replace("\0", " ")[:MOST_OF_A_MEMORY].strip() or "x")


def _compare(text: str) -> object:
    content = _make_memory(text).content
    return find_conflict(content, _make_memory(f"The port is 80. {text}").content)


_EXTRACTOR = Extractor(CaptureSettings())
READERS: dict[str, Callable[[str], object]] = {
    "capture of a prompt": lambda text: _EXTRACTOR.examine(text, "user", now=NOON),
    "capture of an answer": lambda text: _EXTRACTOR.examine(f"We decided to use x.{text}", "assistant", now=NOON),
    "capture of a tool": lambda text: _EXTRACTOR.examine(text, "tool", now=NOON),
    "own sentences": list_own_sentences,
    "teammate statements": read_teammate_statements,
    "summary": lambda text: choose_quotes([SummaryTurn("epi-1", text, "Ann")], 500),
    "passages": cut_passages,
    "settings passages": lambda text: cut_passages(text, is_settings=True),
    "exchange": lambda text: cut_turn(SpokenTurn(text, "Ann", is_named=True), [SpokenTurn(text + "?", "Ben")]),
    "turns": split_turns,
    "front matter": lambda text: read_front_matter(f"---\na: {text}\n---\n"),
    "transcript": lambda text: read_transcript(text, "a"),
    "topic page": parse,
    "times": lambda text: times_in(text, NOON),
    "periods asked for": lambda text: read_periods(text, NOON),
    "identifiers": lambda text: list(find_identifiers(text)),
    "mentions": find_mentions,
    "secrets": SecretRedactor().redact,
    "owner in a request": lambda text: read_request_ownership(text, list_names(text)),
    "owner in a memory": lambda text: read_ownership(text, list_names(text)),
    "conflicts": _compare,
    "words": query_terms,
    "excerpt": lambda text: excerpt(text, {"word": 1.0}, 300),
}

_SECTION = """\
## Build configuration

See [build](#build-configuration-and-environment-variables) and [docs](https://docs.example.com/a-b/v1?q=1#a-b).

```python
client = PoolClient(timeout=3, url="https://api.example.com/pool")
```

| name | type | default |
|---|---|---|
| `timeout` | number | 30 |

- **pool**: the worker-pool-refactoring-for-async-handlers, since v1.2.0
> Note: it was removed on 2025-03-14.

"""
UNITS = (
    _SECTION,
    *"\n \ta-#([\"*>`'_.:;,|<0A",
    "-a", "a-", "> ", "\n\n", " \n", "- ", "# a\n", "## Setting up\n\nRun it.\n\n", "| a | b |\n", '"a ', "“a ",
    "((a", "a, ", "and ", "and Ann ", "Ann and ", "Ann ", "2026-01-01 ", "May 3, ", "3 May to ", "from ", "12:00 ",
    "server" + "a" * 22 + "_ ", "worker-pool-refactoring-for-async-handlers ", "[x](#build-configuration-and-more) ",
    "https://a.example/b/c?d=e ", "a@b.example ", "/usr/lib/a.py ", "password: ", 'key = "a1B2" ', "Ann: hi\n",
    "I use x. ", "because ", "remember that ", "forget ", "你好", "、", "ä", "```\n", "\\", "&amp;", "{", "x = 1\n",
    "1. a\n", "e.g. ", "The port is 8080. ", "Ann's ", "12, ", "77,", "%20", "a.b.", "--", "* [ ] a\n", "<b>", "$",
    "=", "- a: b\n", "not ", "\x00",
)  # fmt: skip
TEXTS = tuple(PumpedText("", unit, tail) for tail in ("!x", "") for unit in UNITS)
"""The first half ends differently than it goes on; the second half is for the deep form."""


def _write(shown: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(shown, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Print each reader and text whose time is not linear, and at last how many readers have one."""
    options = argparse.ArgumentParser()
    options.add_argument("--only", default="")
    options.add_argument("--deep", action="store_true")
    arguments = options.parse_args()
    slow: set[str] = set()
    for name, reader in READERS.items():
        if arguments.only not in name:
            continue
        for text in TEXTS if arguments.deep else TEXTS[: len(UNITS)]:
            if is_suspicious(reader, text.build):
                slope, seconds = measure_slope(reader, text.build, floor=FLOOR, cap=15.0)
                if slope > LIMIT:
                    slow.add(name)
                    shown: dict[str, Any] = {"reader": name, "unit": text.unit, "tail": text.tail}
                    _write({**shown, "slope": round(slope, 2), "seconds": round(seconds, 2)})
    _write({"readers": len(READERS), "slow": len(slow)})


if __name__ == "__main__":
    main()
