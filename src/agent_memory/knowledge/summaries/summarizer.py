"""`ConversationSummarizer`: summaries of turns and of summaries, as a program asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.errors import SummarizationError, ValidationError
from agent_memory.knowledge.intake.withdrawal import get_forgotten_sources
from agent_memory.knowledge.pipeline.conversation_models import Episode, checked_group, summary_of
from agent_memory.knowledge.pipeline.ingestion_config import SummarizationConfig
from agent_memory.knowledge.summaries import summary_stage as making

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.knowledge.pipeline.conversation_models import SummaryType
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Episode as EpisodeRecord
    from agent_memory.models import Summary

MOST_COVERED: Final = 90
"""Records that one summary covers at most."""


class ConversationSummarizer:
    """Summarises what one agent was told. Without a language model each sentence of a summary is a quote.

    Args:
        knowledge: The records.
        config: Sizes and limits.
        asking: Has no effect; earlier versions asked a language model.
    """

    def __init__(self, knowledge: Knowledge, config: SummarizationConfig | None = None, asking: object = None) -> None:
        del asking
        self._knowledge, self.config = knowledge, config or SummarizationConfig()

    async def summarize_window(self, episodes: Sequence[Episode | EpisodeRecord], group_id: str) -> Episode:
        """Return the summary of turns that follow each other; it is not kept.

        Args:
            episodes: Stored ones of the group, usually 10 to 50.
            group_id: `tenant:session`.

        Raises:
            SummarizationError: There are none, one is of another group or is not there, or they state nothing.
            StorageError: A text cannot be read.
        """
        known = await self._records("window", [each.id for each in episodes], group_id)
        return summary_of((await making.window(self._knowledge, known, self.config)).value)

    async def create_meta_summary(self, summaries: Sequence[Episode], group_id: str) -> Episode:
        """Return the summary of some window summaries; it is not kept.

        Args:
            summaries: Kept ones of the group, usually 5 to 10.
            group_id: `tenant:session`.

        Raises:
            SummarizationError: There are none, or one is of another group or is not kept.
        """
        known = await self._summaries([each.id for each in summaries], group_id)
        return summary_of((await making.meta(self._knowledge, known, self.config)).value)

    async def check_and_summarize_if_needed(self, group_id: str) -> Episode | None:
        """Make and keep the summaries of a group that are due; return the last of them, None where none was due.

        Raises:
            SummarizationError: The group has no such name.
            StorageError: What was kept before is on the disk.
        """
        group = _group(group_id, None)
        made: list[Summary] = []
        never = await get_forgotten_sources(self._knowledge)
        for each in await self._knowledge.resources.valid():
            if each.group == group and each.resource_type == "conversation":
                conversation = await making.UncoveredTurns.read(self._knowledge, each.id, never)
                made += await conversation.summarise(self._knowledge, self.config)
        return summary_of(made[-1]) if made else None

    async def _records(self, what: SummaryType, ids: Sequence[str], group_id: str) -> list[EpisodeRecord]:
        group = _group(group_id, what)
        _check_count(ids, what, group_id)
        known = await self._knowledge.episodes.valid_among(ids)
        if any(one not in known or known[one].group != group for one in ids):
            raise _refused("not all of these are stored episodes of this group", what, group_id)
        return [known[one] for one in ids]

    async def _summaries(self, ids: Sequence[str], group_id: str) -> list[Summary]:
        group = _group(group_id, "meta")
        _check_count(ids, "meta", group_id)
        known = await self._knowledge.summaries.valid_among(ids)
        if any(one not in known or known[one].group != group for one in ids):
            raise _refused("not all of these are kept summaries of this group", "meta", group_id)
        return [known[one] for one in ids]


def _group(group_id: str, what: SummaryType | None) -> str:
    try:
        return checked_group(group_id)
    except ValidationError as error:
        raise SummarizationError(error.message, summary_type=what, cause=error, code=error.code) from error


def _check_count(ids: Sequence[str], what: SummaryType, group_id: str) -> None:
    if not 0 < len(ids) <= MOST_COVERED:
        raise _refused(f"a summary covers 1 to {MOST_COVERED} of them, got {len(ids)}", what, group_id)


def _refused(why: str, what: SummaryType, group_id: str) -> SummarizationError:
    return SummarizationError(f"No summary was made: {why}.", group_id=group_id, summary_type=what, code="not_covered")
