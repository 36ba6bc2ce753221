"""A search's filters: checked, and as an index can check them before each memory is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pydantic

from agent_memory.engine import Where
from agent_memory.errors import ValidationError
from agent_memory.models import SearchFilters, describe

if TYPE_CHECKING:
    from collections.abc import Mapping

_MILLISECOND: Final = 0.001


def filters_of(filters: SearchFilters | Mapping[str, Any] | None) -> SearchFilters:
    """Return checked filters.

    Raises:
        ValidationError: Names the field and the rule.
    """
    if isinstance(filters, SearchFilters):
        return filters
    try:
        return SearchFilters.model_validate(dict(filters or {}))
    except (pydantic.ValidationError, TypeError, ValueError) as error:
        reason = describe(error) if isinstance(error, pydantic.ValidationError) else str(error)
        raise ValidationError(f"The filters are wrong: {reason}.", code="invalid_filter") from None


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
