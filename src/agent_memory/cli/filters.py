"""Filters of searches and lists from options."""

from agent_memory.cli.options import FilterOptions, OfferedFilters, parse_tags
from agent_memory.cli.runtime import AgentContext
from agent_memory.models import SearchFilters, filters_of


async def build_filters(run: AgentContext) -> SearchFilters:
    """Build the search filters of the command line.

    Raises:
        ValidationError: The category is unknown, or the time ends before it begins.
        typer.BadParameter: A date or tag is invalid.
    """
    where = run.get_options(FilterOptions)
    named = {
        "date_range": where.bounds(),
        "all_tags": parse_tags(where.tag),
        "category": await run.category(where.category),
        "include_items": where.items,
        "project": where.project,
    }
    return filters_of({**run.values(OfferedFilters), **named})
