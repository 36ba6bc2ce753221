"""From the configuration of modules to settings: what is a module's own, and what all of them share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import pydantic

from agent_memory.errors import ConfigurationError
from agent_memory.models import describe
from agent_memory.settings.base import Settings, did_you_mean
from agent_memory.settings.service import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

WITHOUT_EFFECT: Final = {
    "cache_ttl_seconds": "memories are read from the journal, which is always current, so nothing has to expire",
}
"""Settings of earlier configurations that are accepted and do nothing, each with the reason, which a warning states."""

SettingsT = TypeVar("SettingsT", bound=Settings)


def parse_module_config(
    module: str, own: type[SettingsT], raw: Mapping[str, Any] | None
) -> tuple[SettingsT, dict[str, Any], list[str]]:
    """Split a module's configuration.

    Returns:
        Its own settings; the shared values that were given explicitly, checked; warnings about unknown keys.

    Raises:
        ConfigurationError: A value is wrong; names module, key and rule, never the value.
    """
    if raw is not None and not hasattr(raw, "items"):
        raise ConfigurationError(f"The configuration of {module} is not a mapping of keys to values.")
    given = {str(key): value for key, value in (raw or {}).items() if value is not None}
    known = {**own.model_fields, **ServiceSettings.model_fields}
    warnings = [
        f"{module}: setting {key!r} has no effect: {WITHOUT_EFFECT[key]}"
        if key in WITHOUT_EFFECT
        else f"{module}: unknown setting {key!r} is ignored{did_you_mean(key, known)}"
        for key in given
        if key not in known
    ]
    own_values = {key: value for key, value in given.items() if key in own.model_fields}
    shared = {key: value for key, value in given.items() if key in ServiceSettings.model_fields}
    build_settings(module, ServiceSettings, shared, partial=True)
    return build_settings(module, own, own_values), shared, warnings


def build_settings(
    module: str, kind: type[SettingsT], values: Mapping[str, Any], *, partial: bool = False
) -> SettingsT:
    """Return `kind` made of `values`.

    Args:
        module: Whose settings, for messages.
        kind: Which settings.
        values: Values by key.
        partial: Others may still come from another module, so whether they fit together is not looked at.

    Raises:
        ConfigurationError: A value is wrong; names module, key and rule, never the value. Or two of them contradict
            each other.
    """
    try:
        return kind.model_validate(dict(values), context={"partial": partial})
    except pydantic.ValidationError as error:
        problem = describe(error, field="setting {!r}")
        raise ConfigurationError(f"{module}: {problem}{'' if problem.endswith('?') else '.'}") from None


def merge_shared(given: Mapping[str, Mapping[str, Any]], *, partial: bool = False) -> ServiceSettings:
    """Return the service's settings from what each module was given explicitly.

    Args:
        given: Module id to its explicit shared values.
        partial: More modules may follow; see `build_settings`.

    Raises:
        ConfigurationError: Two modules were given different values for one key (names both), or the values
            contradict each other.
    """
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for module, values in given.items():
        for key, value in values.items():
            if key in merged and merged[key] != value:
                first, second = ("(hidden)", "(another)") if key.endswith("_url") else (merged[key], value)
                raise ConfigurationError(
                    f"{origin[key]} has {key}={first!r} and {module} has {key}={second!r}, but both share one memory.",
                    code="conflicting_settings",
                    recovery=f"Give {key} to one of the two modules, or the same value to both.",
                )
            merged[key], origin[key] = value, module
    return build_settings(" / ".join(given) or "agent-memory", ServiceSettings, merged, partial=partial)
