"""What all sections of settings have in common."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

Positive = Annotated[int, Field(gt=0)]
Rate = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Settings(BaseModel):
    """What all sections have in common: no unknown key, nothing of a value in an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


def did_you_mean(name: str, known: Mapping[str, Any] | tuple[str, ...]) -> str:
    """Return `; did you mean 'KEY'?` for the known name that is nearest, or nothing where none is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
