"""Attributes of records and results as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePath
from typing import Any

from agent_memory.models.clock import to_text


def view_fields(record: Any, *names: str, **renamed: str) -> dict[str, Any]:
    """Return attributes of a record as JSON values.

    Args:
        record: Any object.
        names: Attributes, which are the keys as well.
        renamed: Attributes by other keys.
    """
    attributes = {**dict(zip(names, names, strict=True)), **renamed}
    return {key: _to_json_value(getattr(record, name)) for key, name in attributes.items()}


def _to_json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return to_text(value)
    if isinstance(value, PurePath):
        return str(value)
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
