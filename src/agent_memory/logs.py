"""Loggers of this package: structured by structlog, handed to the standard library's logging, which hosts configure.

structlog's own default prints to stdout, where a host may be writing JSON. It is imported when something is logged:
that takes 40 ms, and most sessions log nothing.
"""

from __future__ import annotations

import logging
from typing import Any, Final


class Logger:
    """Logs an event with fields. Fields are ids, counts and codes; never what a memory says."""

    def __init__(self, name: str) -> None:
        self._name = name

    def warning(self, event: str, **fields: Any) -> None:
        """Log something a person may have to look at."""
        self._structlog().warning(event, **fields)

    def warning_once(self, event: str, **fields: Any) -> None:
        """Log it the first time only that this process says it: hosts try each module's mount before the real one."""
        said = repr((self._name, event, sorted(fields.items())))
        if said not in _SAID:
            _SAID.add(said)
            self.warning(event, **fields)

    def info(self, event: str, **fields: Any) -> None:
        """Log something worth knowing."""
        self._structlog().info(event, **fields)

    def _structlog(self) -> Any:
        import structlog

        return structlog.wrap_logger(
            logging.getLogger(self._name),
            processors=[structlog.processors.LogfmtRenderer(key_order=["event"]), _readable],
            wrapper_class=structlog.stdlib.BoundLogger,
        )


def _readable(_logger: object, _method: str, line: Any) -> str:
    """Return a line with what would steer a terminal, or could not be seen there, as its code: a value may hold it."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)


_SAID: Final[set[str]] = set()


def get_logger(name: str) -> Logger:
    """Return the logger of a module."""
    return Logger(name)
