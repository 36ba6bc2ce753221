"""Counts of imported and exported records for people and as JSON."""

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.screen import OutputScreen
from agent_memory.files.wording import counted
from agent_memory.knowledge.intake.file_formats import is_short_talk
from agent_memory.models import ARCHIVED, CANDIDATE, ENTITY, EPISODE, RELATION, RESOURCE, SUMMARY, TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.knowledge.intake.ingest import FileIngested
    from agent_memory.knowledge.intake.transfer import EntryImport
    from agent_memory.memory.results import Imported


_MAX_PROBLEMS: Final = 20
_SHORT_TALK: Final = 2_000
"""Characters of a file that may be a conversation of a few turns."""
_KIND_WORDS: Final = {
    RESOURCE.name: ("resource", "resources"),
    EPISODE.name: ("turn", "turns"),
    TOPIC.name: ("topic", "topics"),
    ENTITY.name: ("entity", "entities"),
    RELATION.name: ("relation", "relations"),
    SUMMARY.name: ("summary", "summaries"),
    ARCHIVED.name: ("archived memory", "archived memories"),
    CANDIDATE.name: ("candidate", "candidates"),
    "verbatim": ("record of another framework", "records of other frameworks"),
}
"""Printed kinds, singular and plural. Mentions are counted with their entities."""


def list_counts(counts: Mapping[str, int]) -> list[str]:
    """Return counts of records, each with the noun of its kind."""
    nouns = {"memory": ("memory", "memories"), "mentions": ("mention", "mentions"), **_KIND_WORDS}
    return [counted(count, *nouns.get(kind, (kind, kind))) for kind, count in counts.items()]


class TransferTally:
    """Counts the outcome of each memory and prints the counts once.

    Args:
        screen: Output screen of the command.
        done: Verb in the past tense, such as `Imported`.
        labels: `id` or `line` of each memory, in order, for reports of refused ones.
        target: Place of the existing memories: `here` or `there`.

    Attributes:
        unknown_fields: Fields of the file that were ignored; None without a file.
        done: Verb in the past tense.
        given: Outcome of the other record kinds, or None.
    """

    def __init__(self, screen: OutputScreen, done: str, labels: Sequence[dict[str, Any]], target: str = "here") -> None:
        self._screen = screen
        self.done, self._target = done, target
        self._labels = labels
        self._reported = 0
        self.counts = Counter(stored=0, present=0, differs=0, refused=0)
        self.problems: list[dict[str, Any]] = []
        self.redacted: dict[str, None] = {}
        self.unknown_fields: dict[str, None] | None = None
        self.given: EntryImport | None = None
        screen.last_words = self._describe_stop

    def refuse(self, line: int, problem: str) -> None:
        """Count an invalid line."""
        self.counts["refused"] += 1
        self.problems.append({"line": line, "problem": problem})

    def note(self, imported: "Imported") -> None:
        """Count the next memory."""
        self.counts[imported.outcome] += 1
        self.counts.update(change for change in ("lowered", "raised") if getattr(imported, change))
        self.redacted.update(dict.fromkeys(imported.redacted))
        if imported.error is not None:
            self.problems.append({**self._labels[self._reported], "problem": imported.error.message})
        self._reported += 1

    @contextlib.contextmanager
    def counting(self, doing: str) -> "Iterator[Callable[[Imported], None]]":
        """Yield a callback for outcomes; show progress and final counts."""
        try:
            with self._screen.progress() as progress:
                task = progress.add_task(doing, total=len(self._labels))

                def report_outcome(imported: "Imported") -> None:
                    self.note(imported)
                    progress.advance(task)

                yield report_outcome
        finally:
            self.show()  # also if the disk is full or the server fails: the counts so far are printed

    def show(self) -> None:
        """Print counts on stdout and warnings on stderr."""
        self.problems.sort(key=lambda problem: int(problem.get("line", 0)))  # the sort is stable: IDs keep their order
        document = {**self.counts, "problems": self.problems, "redacted": list(self.redacted)}
        file_fields = {} if self.unknown_fields is None else {"unknown_fields": list(self.unknown_fields)}
        knowledge_fields = {} if self.given is None else {"given": build_import_document(self.given)}
        self._screen.document(document | file_fields | knowledge_fields)
        if not self._screen.json:
            self._print_summary()

    def end(self) -> None:
        """Exit with an error if something was refused.

        Raises:
            typer.Exit: At least one record was refused.
        """
        if self.problems:
            raise typer.Exit(FAILED)

    def _describe_stop(self) -> str:
        return f"Stopped after {self._reported:,} of {len(self._labels):,}; repeat the command to continue."

    def _print_summary(self) -> None:
        note = self._screen.note
        for problem in self.problems[:_MAX_PROBLEMS]:
            which = problem.get("id") or f"line {problem['line']}"
            note(f"{which}: {problem['problem']}")
        if len(self.problems) > _MAX_PROBLEMS:
            note(f"… and {len(self.problems) - _MAX_PROBLEMS} more; --json lists them all.")
        if self.redacted:
            note(f"Secrets were removed ({', '.join(self.redacted)}); they are never stored.")
        if self.unknown_fields:
            note(f"Skipped, unknown to this version: {', '.join(self.unknown_fields)}.")
        if self.counts["lowered"]:
            note(
                f"Lowered {self.counts['lowered']:,}: trust, pins, uses, future dates, "
                "replacements and conflicts of a file count only with --trusted. If the file is your own, repeat the "
                "import with --trusted."
            )
        present = self.counts["present"] + self.counts["differs"]
        also = describe_counts(self.given.stored) if self.given is not None else ""
        memories = counted(self.counts["stored"], "memory", "memories")
        parts = [f"{self.done} {memories}{' with ' if also else ''}{also}"]
        raised, forgotten, refused = (self.counts[name] for name in ("raised", "forgotten", "refused"))
        parts += [f"skipped {present:,} that were there"] if present else []
        parts += [f"raised {raised:,} of them to what the file claims"] if raised else []
        parts += [f"left {forgotten:,} forgotten"] if forgotten else []
        parts += [f"refused {refused:,}"] if refused else []
        self._screen.show(", ".join(parts) + ".")
        if self.counts["differs"]:
            note(f"{self.counts['differs']} of those skipped have another text {self._target}, which stays.")


def describe_counts(counts: Counter[str]) -> str:
    """Return counts by kind for people, empty if none."""
    named = [counted(counts[kind], *words) for kind, words in _KIND_WORDS.items() if counts[kind]]
    return ", ".join(named)


def build_import_document(imported: "EntryImport") -> dict[str, Any]:
    """Build the JSON document of the imported knowledge."""
    return {
        name: {
            "stored": imported.stored[kind],
            "present": imported.present[kind],
            **({"purged": imported.purged[kind]} if imported.purged[kind] else {}),
        }
        for kind, (name, _) in _KIND_WORDS.items()
        if kind not in {ARCHIVED.name, CANDIDATE.name}
    }


def note_short_talk(screen: OutputScreen, path: Path, done: "FileIngested") -> None:
    """Report turns that are too few for a conversation."""
    may_be_talk = done.new == 1 and done.characters < _SHORT_TALK and path.suffix.lower() in {".txt", ".md"}
    if may_be_talk and is_short_talk(path.read_text("utf-8", "replace")):
        screen.hint("It was taken as a document. A chat has four turns at least, lines such as `Ada: words`.")
