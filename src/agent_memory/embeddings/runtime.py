"""onnxruntime, imported so that it reports to nobody. The only file that imports it.

From 1.29 on its wheels open a file of their own in the home folder and send reports, beginning with their import;
`ORT_DISABLE_TELEMETRY`, set before that, is their full opt-out. The call of the same purpose comes too late for what
the import began, but it silences the rest where somebody else was first.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

OPT_OUT: Final = "ORT_DISABLE_TELEMETRY"
_OPTED_OUT: Final = frozenset({"1", "true", "yes"})
_REPORTS_FROM: Final = (1, 29)

_TOO_LATE: Final = (
    f"This program had imported onnxruntime before agent-memory did, without {OPT_OUT}=1, so onnxruntime may report to "
    "its maker, though no text of a memory."
)
RECOVERY: Final = f"Set {OPT_OUT}=1 in the environment before the program starts."

_problem: str | None = None


def import_quietly() -> Any:
    """Import onnxruntime without its reports, and return it.

    The variable stays set, for what this process starts.

    Raises:
        ImportError: It is not installed.
    """
    global _problem  # noqa: PLW0603 - of the process, as the import is
    came_first = "onnxruntime" in sys.modules and not is_opted_out()
    opt_out()
    import onnxruntime  # noqa: PLC0415 - not before somebody embeds

    onnxruntime.disable_telemetry_events()
    if came_first and _version(onnxruntime.__version__) >= _REPORTS_FROM:
        _problem = _TOO_LATE
    return onnxruntime


def opt_out() -> None:
    """Set the opt-out, for whatever may import onnxruntime from now on."""
    if not is_opted_out():
        os.environ[OPT_OUT] = "1"


def is_opted_out() -> bool:
    """Tell whether the environment holds the opt-out."""
    return os.environ.get(OPT_OUT, "").casefold() in _OPTED_OUT


def reports() -> str | None:
    """Return, for people, why onnxruntime may report to its maker all the same; None while it cannot."""
    return _problem


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
