"""Consent in one session: all sources and a spoken request."""

from __future__ import annotations

import asyncio
import difflib
from typing import TYPE_CHECKING, Any, Final

from agent_memory.capture.user_requests import find_storing_request
from agent_memory.errors import AgentMemoryError
from agent_memory.integrations.amplifier.identity import (
    find_agent_name,
    find_working_folder,
    get_activation,
    read_host_rules,
)
from agent_memory.memory.consent import (
    MODULES,
    SPOKEN,
    SWITCHES,
    ConsentFiles,
    ConsentModes,
    ConsentRule,
    ConsentState,
    find_own_folders,
    limits_in,
    read_module_rules,
)
from agent_memory.models.identifiers import DEFAULT_AGENT
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_memory.settings import Settings

_MIN_SIMILARITY: Final = 0.8
"""Unknown keys from this similarity to a limit are misspelt: `enable`, `modes`."""
_KNOWN_KEYS: Final = frozenset({*SWITCHES, "model"})
"""Keys that are not misspelt; `model` is a setting of other modules."""
_SECTIONS: Final = ("tools", "hooks")
"""Sections of the host's plan that list our modules."""


class SessionConsent:
    """Consent of one session, or of one sub-session.

    Args:
        coordinator: Coordinator of the host.
        root: Consent of the root session, if this process has it.
    """

    def __init__(self, coordinator: Any, root: SessionConsent | None = None) -> None:
        self._coordinator, self._root, self._files = coordinator, root, ConsentFiles()
        self._blocks: dict[str, dict[str, Any]] = {}
        self._module_rules: tuple[object, tuple[ConsentRule, ...]] = (None, ())
        self._is_stopped = False

    @property
    def is_stopped(self) -> bool:
        """True if the user asked to store nothing of this conversation."""
        return self._root.is_stopped if self._root is not None else self._is_stopped

    def restore(self, *, is_stopped: bool) -> None:
        """Take over a request of an earlier process."""
        self._is_stopped = self._is_stopped or is_stopped

    def take_limits(self, module: str, kind: type[Settings], raw: Any) -> Any:
        """Keep the limits in a module's configuration; return the rest.

        A misspelt key is kept, too: it is reported, and memory stays off until it is corrected.
        """
        if not isinstance(raw, dict):
            return raw
        module_keys = {*kind.model_fields, *ServiceSettings.model_fields}
        misspelt = {key: raw[key] for key in raw if key not in module_keys and _is_misspelt(str(key))}
        block = {**misspelt, **limits_in(raw)}
        self._blocks[module] = block
        return {key: value for key, value in raw.items() if key not in block}

    def resolve(self, settings: ServiceSettings, agent_id: str | None) -> ConsentState:
        """Return the present consent for an agent, or for none."""
        folders = find_own_folders(settings.storage_root, agent_id)
        rules = [*self._files.read(folders, find_working_folder(self._coordinator)), *self.read_modules()]
        if self.is_stopped:
            rules.append(ConsentRule(SPOKEN, modes=ConsentModes("stopped")))
        return ConsentState((*rules, *read_host_rules(self._coordinator)))

    def has_changed(self) -> bool:
        """Return True if a file that limits memory changed since `resolve`."""
        return self._files.has_changed()

    def is_switched_off(self, settings: ServiceSettings) -> bool:
        """Return True if a source without an error switches memory off.

        After an error memory is off as well, but the tools stay, because they report it.
        """
        try:
            agent_id = get_activation(self._coordinator) or find_agent_name(self._coordinator, settings.agent_id)
            agent_id = agent_id or DEFAULT_AGENT
        except AgentMemoryError:
            agent_id = None  # the tools report it
        return self.resolve(settings, agent_id).is_switched_off

    async def hear(self, prompt: str, agent_id: str | None) -> bool:
        """Follow a request in a prompt; return True if it changed something."""
        request = await asyncio.to_thread(find_storing_request, prompt, agent_id or "")
        if request is None or self.is_stopped == (request == "stop"):
            return False
        self._is_stopped = request == "stop"
        return True

    def read_modules(self) -> tuple[ConsentRule, ...]:
        """Return the rules in the configuration of all our modules."""
        blocks = dict(self._iter_plan())
        for module, block in self._blocks.items():
            blocks[module] = {**blocks.get(module, {}), **block}
        if self._module_rules[0] != blocks:
            self._module_rules = blocks, read_module_rules(blocks, find_working_folder(self._coordinator))
        return self._module_rules[1]

    def _iter_plan(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the limits of each of our modules in the host's plan."""
        plan = self._coordinator.config
        for section in _SECTIONS if isinstance(plan, dict) else ():
            for entry in plan.get(section) or ():
                config = entry.get("config") if isinstance(entry, dict) else None
                if isinstance(config, dict) and entry.get("module") in MODULES:
                    yield entry["module"], limits_in(config)


def _is_misspelt(key: str) -> bool:
    return key not in _KNOWN_KEYS and bool(difflib.get_close_matches(key, SWITCHES, 1, _MIN_SIMILARITY))
