"""How well names are found: in noisy posts of strangers, and in texts as agents keep them.

    python -m benchmarks.entities [--data DIR] [--part dev|test] [--texts FILE …] [--sentences FILE …]
        [--most 2000] [--resamples 1000] [--seed 0] [--json]

DIR is a copy of `leondz/emerging_entities_17` (posts, questions and comments; CC BY 4.0), which is not part of this
repository. Its kinds are person, place, group, corporation, product
and creative work: group and corporation are organisations here, a creative work is `other`. A name counts as found
where both its ends are right. Files, hosts, packages, services, orders, issues and accounts are no names to that corpus
and are not counted there; a hashtag's sign belongs to the name there.

`benchmarks/data/mentions.jsonl` has the names in 300 texts, half of them memories of an agent and half messages of
people to agents, labelled by somebody who did not know the rules; a text is told by its hash. The texts are not ours to
pass on: FILEs (JSON lines with `text`, `.gz` or not) have them. Half of them, by the hash, may be looked at while rules
are made; the other half is only counted. "Known names given" is how ingestion reads them: a name that another text of
the same agent or project is found to have is known (texts tell theirs by `project`, or by a `type` of the whole file).
`benchmarks/data/mentions-written.jsonl` has texts written and labelled for this, in many trades, before the rules were
run on them; they are halved, too.

`--sentences` are labelled sentences of any language, as WikiNEuRal and Universal NER have them; of the first `--most`
of each file those with an odd hash are counted.

Intervals are of 95 in 100, over texts drawn again. Ends with 1 if a judged part does not reach what is wanted.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.entities import Gazetteer, mentions_in
from benchmarks._entities_baselines import BASELINES
from benchmarks._entities_sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Span = tuple[int, int, str]
    Finder = Callable[[str], list[Span]]

FILES: Final = {"dev": "emerging.dev.conll", "test": "emerging.test.annotated"}
KINDS: Final = {"person": "person", "location": "place", "group": "organisation", "corporation": "organisation",
                "product": "product", "creative-work": "other"}  # fmt: skip
LABELS: Final = Path(__file__).parent / "data" / "mentions.jsonl"
TUNING: Final = LABELS.with_name("mentions-tuning.jsonl")
"""Labels of other texts, all of which may be looked at while rules are made."""
WRITTEN: Final = LABELS.with_name("mentions-written.jsonl")
_SURE: Final = 0.5
"""Confidence from which on ingestion keeps a name."""
_AGENT_TEXTS: Final = {"precision": 0.9, "recall": 0.8}
WANTED: Final = {"posts": {"f1": 0.5}, "agent texts": _AGENT_TEXTS, "written for this": _AGENT_TEXTS}
_NO_NAMES_THERE: Final = {"file", "host", "package", "service", "order", "issue"}
_NO_RULES_THERE: Final = {"account", "e-mail"}


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text and the names in it: start, end, kind."""

    text: str
    names: tuple[tuple[int, int, str], ...]

    @property
    def is_open(self) -> bool:
        """Whether it may be looked at: the last digit of `hash_of` is even."""
        return int(hash_of(self.text)[-1], 16) % 2 == 0


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one text: names found that are right, all that were found, all there are; and by kind."""

    right: int
    said: int
    wanted: int


def posts(path: Path) -> list[Labelled]:
    """Return the texts of a file of the corpus, its words joined by spaces."""
    found: list[Labelled] = []
    text, names = "", list[tuple[int, int, str]]()
    for line in [*path.read_text(encoding="utf-8").split("\n"), ""]:
        word, _, label = line.strip().partition("\t")
        word, label = word.strip(), label.strip().split("\t")[0]
        if not label:
            if text:
                found.append(Labelled(text, tuple(names)))
            text, names = "", []
            continue
        start = len(text) + bool(text)
        text = f"{text} {word}" if text else word
        if label.startswith("I-") and names and names[-1][1] == start - 1:
            names[-1] = (names[-1][0], len(text), names[-1][2])
        elif label != "O":
            names.append((start, len(text), KINDS[label[2:].lower()]))
    return found


def agent_texts(labels: Path, files: Sequence[Path]) -> list[Labelled]:
    """Return the labelled texts that stand in some files.

    Args:
        labels: A line each, `{"sha256": the first 16 digits of the text's, "mentions": [[start, end, kind], …]}`.
        files: JSON lines with `text`.
    """
    rows = {row["sha256"]: row["mentions"] for row in _lines_of(labels)}
    texts = {hash_of(text): text for file in files for row in _lines_of(file) if (text := row.get("text"))}
    return [
        Labelled(texts[key], tuple((start, end, kind) for start, end, kind in mentions))
        for key, mentions in rows.items()
        if key in texts
    ]


def hash_of(text: str) -> str:
    """Return by what a text is told."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _lines_of(path: Path) -> list[dict[str, Any]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in content.decode("utf-8").splitlines() if line.strip()]


def in_posts(text: str) -> list[Span]:
    """Return names as the corpus of posts counts them."""
    return [
        (mention.start - (text[mention.start - 1 : mention.start] == "#"), mention.end, mention.kind)
        for mention in mentions_in(text)
        if mention.kind not in _NO_NAMES_THERE and mention.rule not in _NO_RULES_THERE
    ]


def in_agent_texts(text: str) -> list[Span]:
    """Return all names of a text."""
    return [(mention.start, mention.end, mention.kind) for mention in mentions_in(text)]


def written_texts(path: Path) -> list[Labelled]:
    """Return the labelled texts of a file that has them."""
    return [Labelled(row["text"], tuple(map(tuple, row["mentions"]))) for row in _lines_of(path)]


def as_ingested(files: Sequence[Path]) -> Finder:
    """Return what finds names as ingestion does: names that other texts of the same agent have are known.

    Args:
        files: JSON lines with `text`, and `project` or `type`; what has neither is of nobody else's.
    """
    known: dict[str, dict[str, Any]] = {}
    whose: dict[str, str] = {}
    for file in files:
        for row in _lines_of(file):
            owner = row.get("project") or (file.name if "type" in row else "")
            if owner and (text := row.get("text")):
                whose[text] = owner
                for mention in mentions_in(text, gazetteer=Gazetteer(known.setdefault(owner, {}))):
                    if mention.confidence >= _SURE:
                        known[owner].setdefault(mention.name, mention.kind)
    gazetteers = {owner: Gazetteer(names) for owner, names in known.items()}

    def find(text: str) -> list[Span]:
        found = mentions_in(text, gazetteer=gazetteers.get(whose.get(text, "")))
        return [(mention.start, mention.end, mention.kind) for mention in found if mention.confidence >= _SURE]

    return find


def counted(texts: Sequence[Labelled], find: Finder, *, typed: bool) -> list[Counts]:
    """Return how many names of each text are found, whatever their kind, or with the kind right."""
    found = []
    for each in texts:
        wanted = Counter(span if typed else span[:2] for span in each.names)
        said = Counter(span if typed else span[:2] for span in find(each.text))
        found.append(Counts((wanted & said).total(), said.total(), wanted.total()))
    return found


def rates(counts: Sequence[Counts]) -> tuple[float, float, float]:
    """Return precision, recall and F1."""
    right, said, wanted = (sum(getattr(each, name) for each in counts) for name in ("right", "said", "wanted"))
    return right / max(said, 1), right / max(wanted, 1), 2 * right / max(said + wanted, 1)


def row_of(name: str, counts: Sequence[Counts], resamples: int, seed: int) -> dict[str, Any]:
    """Return a row of the table: rates, and the interval of each."""
    chance = random.Random(seed)
    drawn = sorted(rates(chance.choices(counts, k=len(counts))) for _ in range(resamples))
    low, high = int(0.025 * resamples), max(int(0.975 * resamples) - 1, 0)
    row: dict[str, Any] = {"what": name}
    for at, rate in enumerate(("precision", "recall", "f1")):
        ordered = sorted(each[at] for each in drawn)
        row[rate] = round(rates(counts)[at], 3)
        row[f"{rate}_interval"] = [round(ordered[low], 3), round(ordered[high], 3)]
    return row


def measured(texts: Sequence[Labelled], finders: dict[str, Finder], resamples: int, seed: int) -> list[dict[str, Any]]:
    """Return the rows of a part: the product in each way, the first one typed too, then the baselines."""
    rows = [row_of(name, counted(texts, find, typed=False), resamples, seed) for name, find in finders.items()]
    first = next(iter(finders.values()))
    rows.insert(1, row_of("names and kinds", counted(texts, first, typed=True), resamples, seed))
    return rows + [row_of(name, counted(texts, each, typed=False), resamples, seed) for name, each in BASELINES.items()]


def speed(texts: Sequence[Labelled], find: Finder) -> float:
    """Return CPU milliseconds a text."""
    find(texts[0].text)
    begun = time.process_time()
    for each in texts:
        find(each.text)
    return round((time.process_time() - begun) / len(texts) * 1000, 3)


def parts_of(options: argparse.Namespace) -> dict[str, tuple[list[Labelled], dict[str, Finder]]]:
    """Return what is measured, and in which ways, by name."""
    parts: dict[str, tuple[list[Labelled], dict[str, Finder]]] = {}
    if options.data is not None:
        parts["posts"] = (posts(options.data / FILES[options.part]), {"names": in_posts})
    alone: dict[str, Finder] = {"names": in_agent_texts}
    if options.texts:
        ways = alone | {"names, known names given": as_ingested(options.texts)}
        texts = agent_texts(LABELS, options.texts)
        parts["agent texts, open half"] = ([each for each in texts if each.is_open], ways)
        parts["agent texts"] = ([each for each in texts if not each.is_open], ways)
        if tuning := agent_texts(TUNING, options.texts):
            parts["agent texts, tuning set"] = (tuning, ways)
    for file in options.sentences:
        every = [Labelled(text, tuple(names)) for text, names in sentences(file, options.most)]
        parts[file.stem] = ([each for each in every if not each.is_open], {"names": in_posts})
    texts = written_texts(WRITTEN)
    parts["written for this, open half"] = ([each for each in texts if each.is_open], alone)
    parts["written for this"] = ([each for each in texts if not each.is_open], alone)
    return parts


def main() -> int:
    """Measure, print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--part", choices=sorted(FILES), default="dev")
    parser.add_argument("--texts", type=Path, nargs="+", default=(), metavar="FILE")
    parser.add_argument("--sentences", type=Path, nargs="+", default=(), metavar="FILE")
    parser.add_argument("--most", type=int, default=2000)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report: dict[str, Any] = {}
    for name, (texts, finders) in parts_of(options).items():
        report[name] = {
            "texts": len(texts),
            "names": sum(len(each.names) for each in texts),
            "cpu_ms_a_text": speed(texts, next(iter(finders.values()))),
            "rows": measured(texts, finders, options.resamples, options.seed),
        }
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        _print(report)
    missed = [name for name, wanted in WANTED.items() if name in report and not _reaches(report[name], wanted)]
    return 1 if missed else 0


def _reaches(part: dict[str, Any], wanted: dict[str, float]) -> bool:
    return all(part["rows"][0][rate] >= least for rate, least in wanted.items())


def _print(report: dict[str, Any]) -> None:
    for name, part in report.items():
        print(f"{name}: {part['texts']} texts, {part['names']} names, {part['cpu_ms_a_text']} ms of CPU a text")
        print(f"  {'':28}{'precision':>22}{'recall':>22}{'F1':>22}")
        for row in part["rows"]:
            cells = "".join(
                f"{row[rate]:>8.3f} [{row[f'{rate}_interval'][0]:.3f}, {row[f'{rate}_interval'][1]:.3f}]".rjust(22)
                for rate in ("precision", "recall", "f1")
            )
            print(f"  {row['what']:28}{cells}")


if __name__ == "__main__":
    raise SystemExit(main())
