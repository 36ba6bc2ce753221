"""`ConsentState`: consent by several sources; the strictest counts. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import pydantic

from agent_memory.memory.consent_modes import NARROWER, Mode, Modes, read_modes, strictest
from agent_memory.settings import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

SWITCHES: Final = ("enabled", "mode", *NARROWER)
"""Keys by which a source limits memory."""
LEAST_RETAIN_DAYS: Final = 7
_PROJECT_KEYS: Final = ("enabled", "mode", "categories", "retain_days", "hosts")
_YES_OR_NO: Final = pydantic.TypeAdapter(bool)


@dataclass(frozen=True, slots=True)
class ConsentRule:
    """Limits that one source sets.

    Attributes:
        source: Name of the source, for people: a file, or "your request in this conversation".
        enabled: Whether memory is on.
        modes: What may be stored while it is on.
        warnings: A sentence for each thing that was not understood.
        places: File and line of a key, such as `projects.kestrel`, where they are known.
        retain_days: Age at which memories of the project go to the archive, in days; None for never.
    """

    source: str
    enabled: bool = True
    modes: Modes = field(default_factory=Modes)
    warnings: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    retain_days: int | None = None

    def locate(self, key: str) -> str:
        """Return the file and line of a key, else its source."""
        return self.places.get(key) or self.places.get(key.partition(".")[0]) or self.source


@dataclass(frozen=True, slots=True)
class ConsentState:
    """Consent by all sources: `ConsentState((rule, …)).get_mode("note", "kestrel")`.

    Attributes:
        rules: One for each source that exists.
    """

    rules: tuple[ConsentRule, ...] = ()

    @property
    def is_enabled(self) -> bool:
        """True while memory is on."""
        return all(rule.enabled for rule in self.rules)

    @property
    def is_switched_off(self) -> bool:
        """True if a source without an error switches memory off."""
        return any(not rule.enabled and not rule.warnings for rule in self.rules)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of all sources."""
        return tuple(warning for rule in self.rules for warning in rule.warnings)

    @property
    def retain_days(self) -> int | None:
        """Least age in days for the archive, or None."""
        return min((rule.retain_days for rule in self.rules if rule.retain_days is not None), default=None)

    def get_mode(self, category: str = "", project: str = "") -> Mode:
        """Return the strictest mode for a category in a project."""
        return strictest([rule.modes.of(category, project) for rule in self.rules] or ["autonomous"])

    def may_capture(self, project: str) -> bool:
        """Return True if capture may keep some category, or ask for it."""
        categories = {"", *(name for rule in self.rules for name in rule.modes.categories)}
        return any(self.get_mode(category, project) in {"autonomous", "ask"} for category in categories)

    def decided_by(self, category: str = "", project: str = "") -> str:
        """Return file and line of the strictest limit, or an empty text."""
        for rule in self.rules:
            if not rule.enabled:
                return rule.locate("enabled")
        mode = self.get_mode(category, project)
        rules = [rule for rule in self.rules if rule.modes.of(category, project) == mode != "autonomous"]
        return rules[0].locate(rules[0].modes.find_key(category, project)) if rules else ""


def read_rule(block: object, source: str, places: Mapping[str, str] | None = None) -> ConsentRule:
    """Read `enabled`, `mode`, `projects` and `categories` of one source.

    Fails closed: who writes such keys wants to limit memory. What is neither yes nor no, and an unknown key, switch
    memory off; an unknown mode counts as `manual`.

    Args:
        block: The mapping, or a yes or no alone.
        source: Its place, for people.
        places: File and line of each key.
    """
    limits: dict[object, object] = block if isinstance(block, dict) else {"enabled": block}
    enabled, warnings = True, list[str]()
    for key, value in limits.items():
        if key not in SWITCHES:
            enabled = False
            near = did_you_mean(str(key), SWITCHES) or "."
            warnings.append(f"{source}: unknown key {str(key)[:40]!r}{near} Memory stays off until it is corrected.")
        elif key == "enabled" and value is not None:
            wanted = _yes_or_no(value)
            enabled = enabled and bool(wanted)
            if wanted is None:
                warnings.append(f"{source}.enabled is neither true nor false. Memory stays off until it is corrected.")
            elif value is not wanted and not wanted:
                warnings.append(f"{source}.enabled is taken for false; write false, without quotes, to drop the tools.")
    modes, not_understood = read_modes(limits, source)
    return ConsentRule(source, enabled, modes, (*warnings, *not_understood), places or {})


def read_project_rule(block: object, source: str, places: Mapping[str, str], host: str) -> ConsentRule:
    """Read the limits in a project's file; an error stops storing.

    Args:
        block: Content of the file.
        source: Its path, for people.
        places: File and line of each key.
        host: Name of the program that the session runs in, for `hosts`.
    """
    if not isinstance(block, dict):
        return stop_storing(source, "it is not a mapping of keys to values")
    if unknown := next((key for key in block if key not in _PROJECT_KEYS), None):
        return stop_storing(source, f"unknown key {str(unknown)[:40]!r}{did_you_mean(str(unknown), _PROJECT_KEYS)}")
    days, hosts = block.get("retain_days"), block.get("hosts")
    if days is not None and (type(days) is not int or days < LEAST_RETAIN_DAYS):
        return stop_storing(source, f"retain_days is not a whole number of at least {LEAST_RETAIN_DAYS}")
    names = [hosts] if isinstance(hosts, str) else hosts
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        return stop_storing(source, "hosts is not a list of names")
    rule = read_rule({key: block[key] for key in SWITCHES if key in block}, source, places)
    if rule.warnings:
        return ConsentRule(source, rule.enabled, Modes("stopped"), rule.warnings, places)
    is_elsewhere = names is not None and host not in {name.casefold() for name in names}
    places = {**places, "enabled": places.get("hosts", source)} if is_elsewhere and rule.enabled else places
    return ConsentRule(source, rule.enabled and not is_elsewhere, rule.modes, (), places, days)


def stop_storing(source: str, problem: str) -> ConsentRule:
    """Return the rule of an erroneous source: it stops storing."""
    sentence = problem if problem.endswith("?") else f"{problem}."
    warning = f"{source}: {sentence} Nothing is stored in this project until it is corrected."
    return ConsentRule(source, modes=Modes("stopped"), warnings=(warning,))


def switch_off(source: str, problem: str) -> ConsentRule:
    """Return the rule of an erroneous source: memory is off."""
    return ConsentRule(source, enabled=False, warnings=(f"{source}: {problem}. Memory is off until it is corrected.",))


def _yes_or_no(value: object) -> bool | None:
    """Return the yes or no that `value` means, or None."""
    try:
        return _YES_OR_NO.validate_python(value)
    except pydantic.ValidationError:
        return None
