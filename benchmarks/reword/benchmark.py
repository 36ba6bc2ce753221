"""Writes a drift world in other words: the same facts, contradictions and harmless pairs, none of its sentences.

    python -m benchmarks.reword FILE --frames minutes|headlines|cards -o OUT

FILE is a world for `benchmarks.drift`, `.json` or `.json.gz`. Its titles and bodies are read by the skeletons of their
sentences and written in the frames of `benchmarks/reword/rewordings/NAME.toml`; questions stay as they were asked, and
the answers that are looked for follow the new wording. The frames were written before there was a rule that looks for
contradictions, so that no such rule could lean on their words. Fails when a note or an answer did not survive.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import build_parser
from benchmarks.reword.reading import ClaimReader, conditions
from benchmarks.reword.rewording import RewordingFrames, names, readings

if TYPE_CHECKING:
    from collections.abc import Iterator


def main() -> int:
    """Write the world; 1 when something in it could not be read."""
    parser = build_parser("reword", __doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--frames", required=True, choices=names(), help="in whose words")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT")
    args = parser.parse_args()
    world = read_world(args.file)
    unread = reword(world, RewordingFrames(args.frames))
    text = json.dumps(world, ensure_ascii=False)
    data = text.encode()
    args.output.write_bytes(gzip.compress(data, mtime=0) if args.output.suffix == ".gz" else data)
    for each in unread[:10]:
        print(f"not understood: {each}", file=sys.stderr)
    return 1 if unread else 0


def read_world(path: Path) -> dict[str, Any]:
    """Return a world from `.json` or `.json.gz`."""
    data = path.read_bytes()
    world: dict[str, Any] = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return world


def reword(world: dict[str, Any], frames: RewordingFrames) -> list[str]:
    """Rewrite a world in place; return the titles that are of no known form and the answers that were lost."""
    reader = ClaimReader(conditions([record["body"] for record in _records(world)]))
    unread: list[str] = []
    texts: dict[str, str] = {}
    for record in _records(world):
        claim = reader.claim(record["title"])
        if claim is None:
            unread.append(record["title"])
            continue
        key = re.sub(r"^z-", "", record["key"])  # what is written again is written in the same words
        record["title"], record["body"] = frames.note(claim, record["title"], record["body"], key)
        texts[record["key"]] = f"{record['title']}\n{record['body']}"
    for probe in world["probes"]:
        unread += _follow(probe, texts)
    world["digest"] = f"{world.get('digest', '')}-{frames.name}"
    return unread


def _records(world: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for step in world["ops"]:
        if step["op"] in ("inscribe", "supersede"):
            yield step["record"] if step["op"] == "inscribe" else step["new"]


def _follow(probe: dict[str, Any], texts: dict[str, str]) -> list[str]:
    """Give a probe the answers of the new wording; return those that are in no form there."""
    lost = []
    if "answers" in probe:
        found = [
            (_written(key, answer, texts), answer) for key, answer in zip(probe["gold"], probe["answers"], strict=True)
        ]
        probe["answers"] = [new or old for new, old in found]
        lost = [old for new, old in found if new is None]
    elif "answer" in probe:
        key = next(probe[name] for name in ("gold", "head", "victim") if name in probe)
        new = _written(key, probe["answer"], texts)
        lost = [probe["answer"]] if new is None else []
        probe["answer"] = new or probe["answer"]
    return lost


def _written(key: str, answer: str, texts: dict[str, str]) -> str | None:
    text = texts.get(key, "").lower()
    return next((form for form in readings(answer) if form.lower() in text), None)
