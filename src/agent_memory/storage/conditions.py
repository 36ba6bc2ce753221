"""A search's filters: checked, and as an index can check them before each memory is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pydantic

from agent_memory.engine import Where
from agent_memory.errors import ValidationError
from agent_memory.models import SearchFilters, describe

_MILLISECOND: Final = 0.001


def filters_of(filters: SearchFilters | Mapping[str, Any] | None) -> SearchFilters:
    """Return checked filters.

    Raises:
        ValidationError: Names the field and the rule.
    """
    if isinstance(filters, SearchFilters):
        return filters
    if filters is not None and not isinstance(filters, Mapping):
        raise ValidationError(
            f"The filters are wrong: they are of type {type(filters).__name__}, not a mapping.",
            code="invalid_filter",
            recovery="Give them as in {'category': 'decision', 'tags': ['db']}.",
        )
    try:
        return SearchFilters.model_validate(dict(filters or {}))
    except (pydantic.ValidationError, TypeError, ValueError) as error:
        reason = describe(error) if isinstance(error, pydantic.ValidationError) else str(error)
        raise ValidationError(f"The filters are wrong: {reason}.", code="invalid_filter") from None


def check_question(query: object, limit: object) -> None:
    """Refuse what is no question or no number, before anything is computed with it.

    Raises:
        ValidationError: Names the argument and its type.
    """
    if not isinstance(query, str):
        raise ValidationError(f"The query must be text, got {type(query).__name__}; '' asks for the latest.")
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise ValidationError(f"limit must be a whole number from 1 to 100, got {type(limit).__name__}.")


def where_of(conditions: SearchFilters) -> Where:
    """Return what can be checked before each memory is looked at: never more than is asked, sometimes less.

    Access counts are left out: they change with every search, and an engine is not told each time. A bound in time is
    a millisecond wider, since numbers are less exact than dates.
    """
    between = conditions.date_range
    return Where(
        category=conditions.category,
        tags=tuple(conditions.all_tags),
        any_tags=tuple(conditions.tags),
        since=between.start.timestamp() - _MILLISECOND if between and between.start else None,
        until=between.end.timestamp() + _MILLISECOND if between and between.end else None,
    )
