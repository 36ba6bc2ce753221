"""`Sealing`: has what many changes left unsealed be sealed by a child process, behind searches and writes."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Generic

from typing_extensions import override

from agent_memory.logs import get_logger
from agent_memory.models.kind import R
from agent_memory.storage.upkeep import NoIndex
from agent_memory.storage.vector.engine.client import child_environment, python_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.embeddings import EmbedderIdentity
    from agent_memory.errors import ConfigurationError
    from agent_memory.files.layout import AgentFolder
    from agent_memory.storage.replica import Replica

log = get_logger(__name__)

_REST_SECONDS: Final = 10.0
"""From one child to the next: the second finds what the first left, such as vectors that were still to be made."""


class Sealing(NoIndex, Generic[R]):
    """An `Upkeep` of files without an engine.

    Args:
        replica: The records.
        folder: Where they lie.
        identity: Whose vectors to add; None for none.
        why: As in `NoIndex`.
        least: Changed records from which on they are sealed.
    """

    def __init__(
        self,
        replica: Replica[R],
        folder: AgentFolder,
        identity: EmbedderIdentity | None,
        why: Callable[[], ConfigurationError],
        least: int,
    ) -> None:
        super().__init__("file", why, folder)
        self._replica = replica
        self._agent = folder
        self._identity = identity
        self._least = least
        self._child: subprocess.Popen[bytes] | None = None
        self._done_at = 0
        self._begun = -_REST_SECONDS

    @override
    def before_search(self) -> None:
        """Have a child seal what there is, once there is enough of it."""
        if self._child is not None and self._child.poll() is None:
            return
        state = self._replica.state
        seq = self._replica.log.watermark[1]
        waiting = len(state.changed_at)
        if waiting < self._least or seq - self._done_at < self._least or self._rests():
            return
        self._done_at, self._begun = seq, time.monotonic()
        self._child = _started(
            [
                *python_module("agent_memory.storage.sealed.sealing"),
                str(self._agent.path),
                self._replica.kind.place,
                json.dumps(asdict(self._identity)) if self._identity is not None else "",
            ]
        )

    @override
    def after_write(self) -> None:
        """As before a search."""
        self.before_search()

    def _rests(self) -> bool:
        return time.monotonic() - self._begun < _REST_SECONDS


def _started(command: list[str]) -> subprocess.Popen[bytes] | None:
    """Start a child that goes on when this process ends: what it makes is for the next one."""
    nothing: Any = subprocess.DEVNULL
    try:
        return subprocess.Popen(  # noqa: S603 - this interpreter, a module of ours, a path of ours
            command, stdin=nothing, stdout=nothing, stderr=nothing, env=child_environment(), start_new_session=True
        )
    except OSError as error:
        log.warning("sealing_not_started", error=str(error))
        return None
