"""What a summary is as a record, how long it may be, and of what it is made. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import SummarizationError
from agent_memory.ingestion.summaries.sentence_value import Passage
from agent_memory.models import COVERS, PART_OF, SUMMARY, Episode, derived_id, to_text
from agent_memory.scratchpad import estimate_tokens
from agent_memory.service.trust import lowest
from agent_memory.storage.cleaning import make_record, with_fields

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agent_memory.ingestion.shapes import SummaryType
    from agent_memory.models import Summary
    from agent_memory.redaction import Redactor
    from agent_memory.storage.cleaning import Redacted

WINDOW_SHARE: Final = 0.3
META_SHARE: Final = 0.6
"""Of the characters of what is summarised, at most."""
_SPEAKER: Final = 60
"""Characters within which a line of a summary names who speaks."""
_MOST_CONVERSATIONS: Final = 8
"""Conversations that a summary links to, at most."""
NOTHING: Final = "nothing_to_summarise"
"""Code of the error for turns that state nothing."""
RULES: Final = "quotes"
"""`source.detail` of a summary that was made without a language model."""


def passages_of(episodes: Sequence[Episode], texts: Sequence[str]) -> list[Passage]:
    """Return turns as what is read, given the whole text of each."""
    return [Passage(each.id, text, each.speaker or each.role) for each, text in zip(episodes, texts, strict=True)]


def lines_as_passages(summaries: Sequence[Summary]) -> list[Passage]:
    """Return the lines of summaries as what is read."""
    found = []
    for each in summaries:
        for at, line in enumerate(each.content.splitlines()):
            head, mark, rest = line.partition(": ")
            speaker, said = (head, rest) if mark and len(head) <= _SPEAKER else ("", line)
            found.append(Passage(f"{each.id}/{at}", said, speaker))
    return found


def most_of(texts: Sequence[str], share: float, max_tokens: int) -> int:
    """Return how many characters a summary of some texts may have: a share of theirs, and so many tokens."""
    chars = sum(map(len, texts))
    tokens = sum(map(estimate_tokens, texts))
    return min(int(share * chars), int(max_tokens * chars / max(1, tokens)))


def made(
    level: SummaryType,
    covered: Sequence[Episode | Summary],
    content: str,
    characters: int,
    now: datetime,
    *,
    form: str = RULES,
    redactor: Redactor | None = None,
) -> Redacted[Summary]:
    """Return a summary as it would be stored.

    Args:
        level: Of turns, or of summaries.
        covered: What it is of: records of one group.
        content: What it says.
        characters: Of what it covers.
        now: The present.
        form: By what it was made.
        redactor: Takes secrets out of the text.

    Raises:
        SummarizationError: It says nothing, or is of several groups.
    """
    group = _group_of(level, covered, content)
    moments = [each.moment for each in covered]
    orders = [each.order for each in covered if isinstance(each, Episode)]
    values: dict[str, Any] = {
        "level": level,
        "content": content,
        "group": group,
        "timestamp": now,
        "observed_at": max(moments),
        "source": {"kind": "extraction", "detail": form},
        "trust": lowest(*(each.trust for each in covered)),
        "links": _links_of(covered),
        "metadata": {
            "since": to_text(min(moments)),
            "until": to_text(max(moments)),
            "compression_ratio": round(len(content) / max(1, characters), 3),
            "tokens": estimate_tokens(content),
            **({"through": max(orders)} if orders else {}),
        },
    }
    record = make_record(SUMMARY, values, covered[0].agent_id, redactor)
    return with_fields(record, id=derived_id(SUMMARY.prefix, level, *(each.id for each in covered)))


def _group_of(level: SummaryType, covered: Sequence[Episode | Summary], content: str) -> str:
    """Return the group of what a summary covers, or raise what `made` says."""
    groups = {each.group for each in covered}
    group = next(iter(groups), "")
    if not content or len(groups) > 1:
        what = "has nothing that states anything" if not content else "is of several groups"
        raise SummarizationError(
            f"No summary was made: what it is to cover {what}. Nothing was changed.",
            group_id=group or None,
            summary_type=level,
            code=NOTHING if not content else "several_groups",
            recovery="Give turns of one conversation with statements; questions and greetings are left out.",
        )
    return group


def _links_of(covered: Sequence[Episode | Summary]) -> list[dict[str, str]]:
    """Return the links of a summary: to the conversations it is of, the first of them, and to all that it covers."""
    conversations = dict.fromkeys(link.id for each in covered for link in each.links if link.rel == PART_OF)
    return [
        *({"rel": PART_OF, "id": one} for one in [*conversations][:_MOST_CONVERSATIONS]),
        *({"rel": COVERS, "id": each.id} for each in covered),
    ]
