"""Filters of searches and lists from options."""

from agent_memory.cli.options import FilterOptions, OfferedFilters, tags_of
from agent_memory.cli.runtime import AgentContext
from agent_memory.models import SearchFilters, filters_of


async def filters_given(run: AgentContext) -> SearchFilters:
    """Return the conditions that the command line names.

    Raises:
        ValidationError: There is no such category, or the time ends before it begins.
        typer.BadParameter: A date or a tag is none.
    """
    where = run.given(FilterOptions)
    named = {
        "date_range": where.bounds(),
        "all_tags": tags_of(where.tag),
        "category": await run.category(where.category),
        "include_items": where.items,
        "project": where.project,
    }
    return filters_of({**run.values(OfferedFilters), **named})
