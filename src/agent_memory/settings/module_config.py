"""Configuration of modules: their own settings, and those that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pydantic

from agent_memory.earlier_name_tables import RENAMED_SETTINGS, SETTINGS
from agent_memory.errors import ConfigurationError
from agent_memory.models import describe
from agent_memory.settings.schema import ServiceSettings, Settings, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

SettingsT = TypeVar("SettingsT", bound=Settings)


def parse_module_config(
    module: str, own_type: type[SettingsT], raw: Mapping[str, Any] | None
) -> tuple[SettingsT, dict[str, Any], list[str]]:
    """Split a module's configuration.

    Returns:
        The module's own settings; explicit shared values, checked; warnings about unknown keys.

    Raises:
        ConfigurationError: A value is wrong; names module, key and rule, never the value.
    """
    if raw is not None and not hasattr(raw, "items"):
        raise ConfigurationError(f"The configuration of {module} is not a mapping of keys to values.")
    config = {str(key): value for key, value in (raw or {}).items() if value is not None}
    names = {**own_type.model_fields, **ServiceSettings.model_fields}
    renamed = {key: RENAMED_SETTINGS[key] for key in config if RENAMED_SETTINGS.get(key) in own_type.model_fields}
    for key, name in renamed.items():
        value = config.pop(key)
        config[name] = [*config[name], *value] if isinstance(config.get(name), list | tuple) else value
    warnings = [f"{module}: setting {key!r} is called {name!r} now" for key, name in renamed.items()]
    warnings += [
        f"{module}: setting {key!r} has no effect: {SETTINGS[key]}"
        if key in SETTINGS
        else f"{module}: unknown setting {key!r} is ignored{did_you_mean(key, names)}"
        for key in config
        if key not in names
    ]
    own_values = {key: value for key, value in config.items() if key in own_type.model_fields}
    shared = {key: value for key, value in config.items() if key in ServiceSettings.model_fields}
    build_settings(module, ServiceSettings, shared, partial=True)
    return build_settings(module, own_type, own_values), shared, warnings


def build_settings(
    module: str, kind: type[SettingsT], values: Mapping[str, Any], *, partial: bool = False
) -> SettingsT:
    """Return checked settings.

    Args:
        module: Name of the module, for messages.
        kind: Class of the settings.
        values: Explicit values by key.
        partial: True if another module may add values; contradictions are not checked then.

    Raises:
        ConfigurationError: A value is wrong; names module, key and rule, never the value. Or two of them contradict
            each other.
    """
    try:
        return kind.model_validate(dict(values), context={"partial": partial})
    except pydantic.ValidationError as error:
        problem = describe(error, field="setting {!r}")
        raise ConfigurationError(f"{module}: {problem}{'' if problem.endswith('?') else '.'}") from None


def merge_shared(configs: Mapping[str, Mapping[str, Any]], *, partial: bool = False) -> ServiceSettings:
    """Return the service's settings from the modules' explicit shared values.

    Args:
        configs: Explicit shared values by module.
        partial: True if another module may add values; see `build_settings`.

    Raises:
        ConfigurationError: Two modules have different values for one key (names both), or values contradict each other.
    """
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for module, values in configs.items():
        for key, value in values.items():
            if key in merged and merged[key] != value:
                first, second = ("(hidden)", "(another)") if key.endswith("_url") else (merged[key], value)
                raise ConfigurationError(
                    f"{origin[key]} has {key}={first!r} and {module} has {key}={second!r}, but both share one memory.",
                    code="conflicting_settings",
                    recovery=f"Give {key} to one of the two modules, or the same value to both.",
                )
            merged[key], origin[key] = value, module
    return build_settings(" / ".join(configs) or "agent-memory", ServiceSettings, merged, partial=partial)
