"""Names in a text: identifiers by form, names that are known, and capitalized words inside sentences. Pure."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.entities.identifiers import find_accounts, find_identifiers
from agent_memory.knowledge.entities.mention import KNOWN, REPEATED, SEEN_ONCE, Gazetteer, Mention
from agent_memory.knowledge.entities.proper_names import find_runs, hide_code, is_modifier
from agent_memory.knowledge.entities.spans import SpanSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_memory.knowledge.entities.proper_names import CapitalizedRun

LOWERCASE: Final = "small letters"
"""Rule of a mention of a capitalized name in lower case."""
BY_CAPITALS: Final = "capitals"
"""Detail of the source of an entity that was found by a capital letter alone."""
BY_NAME: Final = frozenset({LOWERCASE, "known name", BY_CAPITALS})
"""Rules that find a name by its words rather than its form."""
_IMAGE: Final = re.compile(r"(!\[[^\]\n]{0,200}\])(\([^)\n]{0,500}\))")
"""Image of a Markdown text, such as a badge, and its address."""
_WORD: Final = re.compile(r"[^\W_]+")
_LONGER_BEFORE: Final = re.compile(r"[\w/@\\#.-]")
_LONGER: Final = re.compile(r"[\w/\\@-]|[.:]\w")


def find_mentions(text: str, *, gazetteer: Gazetteer | None = None, speaker: str = "") -> tuple[Mention, ...]:
    """Return the names in a text in order; none overlap.

    Args:
        text: Text of a person or an agent.
        gazetteer: Names that are known, and names that were seen once.
        speaker: Name of the person who speaks, who is no mention as the label of the text (`Ann: I …`).
    """
    label = f"{speaker}: "
    offset = len(label) if speaker and text.startswith(label) else 0
    text = _IMAGE.sub(lambda match: match[1] + " " * len(match[2]), " " * offset + text[offset:])
    prose = hide_code(text)
    runs = list(find_runs(prose))
    known = _find_known(prose, gazetteer or Gazetteer(), speaker, runs)
    spans = SpanSet()
    every = chain(find_identifiers(text), known, find_accounts(prose), _find_unknown(prose, runs))
    return tuple(sorted((each for each in every if spans.add(each.start, each.end)), key=lambda mention: mention.start))


def _find_known(prose: str, gazetteer: Gazetteer, speaker: str, runs: Sequence[CapitalizedRun]) -> Iterator[Mention]:
    """Yield known names that are no part of a longer run."""
    spoken = Gazetteer({speaker: "person"} if speaker else {})
    run_at = {position: run for run in runs for position in range(run.start, run.end)}
    end = 0
    for word in _WORD.finditer(prose):
        start = word.start()
        for name, kind, is_candidate, has_lowercase_use in (*spoken.find(word[0]), *gazetteer.find(word[0])):
            end_of_name = start + len(name)
            written, run = prose[start:end_of_name], run_at.get(start)
            is_lowercase = written == name.casefold() != name and kind == "name"
            is_longer = run is not None and len(run.name) > len(name)
            if (
                start < end
                or (written != name and not is_lowercase)
                or is_longer
                or _is_part(prose, start, end_of_name)
            ):
                continue
            is_evident = run is not None and run.is_evidence
            is_refused = (is_candidate and is_modifier(prose, name, end_of_name)) or (
                has_lowercase_use and not is_evident
            )
            if is_lowercase or not is_refused:
                end = end_of_name
                confidence = SEEN_ONCE if is_candidate else KNOWN
                yield Mention(written, kind, start, end, confidence, LOWERCASE if is_lowercase else "known name")
            break


def _find_unknown(prose: str, runs: Sequence[CapitalizedRun]) -> Iterator[Mention]:
    """Yield every occurrence of likely names.

    A name that the text also has in lower case is not likely.
    """
    names = dict.fromkeys(run.name for run in runs if run.is_evidence)
    for name in sorted(names, key=len, reverse=True):
        if name.casefold() in prose and _find_words(prose, name.casefold()):
            continue
        places = [start for start in _find_words(prose, name) if not is_modifier(prose, name, start + len(name))]
        confidence = REPEATED if len(places) > 1 else SEEN_ONCE
        for start in places:
            yield Mention(name, "name", start, start + len(name), confidence, BY_CAPITALS)


def _find_words(prose: str, name: str) -> list[int]:
    """Return where a name begins, as whole words."""
    starts = (match.start() for match in re.finditer(re.escape(name), prose))
    return [start for start in starts if not _is_part(prose, start, start + len(name))]


def _is_part(prose: str, start: int, end: int) -> bool:
    """Return True for a part of a path or a longer word."""
    return _LONGER_BEFORE.match(prose[start - 1 : start]) is not None or _LONGER.match(prose, end) is not None
