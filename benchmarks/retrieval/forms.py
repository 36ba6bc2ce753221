"""The forms in which a turn of a talk may be written: each is the same words, said by the same person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

NAME: Final = "name"
"""The form `Name: words`, taken where none is asked for."""

OBSERVATIONS: Final = "observations"
"""No form of turns: the facts that LoCoMo's makers drew from them."""

FORMS: Final[dict[str, Callable[[str, str, datetime], str]]] = {
    NAME: lambda who, text, _: f"{who}: {text}",
    "none": lambda _, text, __: text,
    "bold": lambda who, text, _: f"**{who}:** {text}",
    "clock": lambda who, text, when: f"[{when:%H:%M}] {who} says: {text}",
    "json": lambda who, text, _: json.dumps({"speaker": who, "text": text}, ensure_ascii=False),
}
"""How a turn is written, by the form's name: from who speaks, what they say and when."""
