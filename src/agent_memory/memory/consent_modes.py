"""`Modes`: whether what is said may be kept by itself, after a yes, or only when asked for; by project and category."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from agent_memory.models import CATEGORIES
from agent_memory.settings import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

Mode: TypeAlias = Literal["autonomous", "ask", "manual", "stopped"]
MODES: Final[tuple[Mode, ...]] = ("autonomous", "ask", "manual")
"""Modes that a configuration may name, from the one that keeps most to the strictest."""
_STRICTNESS: Final[tuple[Mode, ...]] = (*MODES, "stopped")
"""`stopped` stores nothing at all; it comes from a spoken request or from a file that cannot be read."""
NARROWER: Final = ("projects", "categories")
"""Keys beside `mode`: modes by the name of a project, and by a category."""
_OFF: Final = ("off", "False")
"""Other words for manual; YAML reads a bare `off` as false."""
_OUTCOME: Final = "Nothing is captured there; the model stores only what the user asks for."


@dataclass(frozen=True, slots=True)
class Modes:
    """The mode of all that is said, and of what a project or a category names.

    Attributes:
        mode: Where nothing else is said.
        projects: By the name of a project, in small letters.
        categories: By category.
    """

    mode: Mode = "autonomous"
    projects: Mapping[str, Mode] = field(default_factory=lambda: MappingProxyType({}))
    categories: Mapping[str, Mode] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, category: str = "", project: str = "") -> Mode:
        """Return the mode for a category in a project: the stricter one where both are named, else what is named."""
        named = (self.projects.get(project.casefold()), self.categories.get(category))
        return strictest([mode for mode in named if mode is not None] or [self.mode])

    def find_key(self, category: str = "", project: str = "") -> str:
        """Return the deciding key: `mode`, `projects.NAME` or `categories.NAME`."""
        mode, name = self.of(category, project), project.casefold()
        if self.projects.get(name) == mode:
            return f"projects.{name}"
        return f"categories.{category}" if self.categories.get(category) == mode else "mode"


def strictest(modes: list[Mode]) -> Mode:
    """Return the mode of some that keeps least."""
    return max(modes, key=_STRICTNESS.index)


def read_modes(memory: Mapping[object, object], where: str) -> tuple[Modes, list[str]]:
    """Read `mode`, `projects` and `categories`; what is not understood counts as `manual`.

    Args:
        memory: The mapping they stand in.
        where: Its place in the configuration, for warnings.

    Returns:
        The modes; and a sentence for each thing that was not understood.
    """
    warnings: list[str] = []
    general = _mode(memory.get("mode"), f"{where}.mode", warnings) or MODES[0]
    found: dict[str, dict[str, Mode]] = {}
    for key in NARROWER:
        given = memory.get(key)
        if given is not None and not isinstance(given, dict):
            warnings.append(f"{where}.{key} is no mapping of names to modes. {_OUTCOME}")
            general = "manual"
        named = given if isinstance(given, dict) else {}
        modes = {str(name): _mode(value, f"{where}.{key}.{name}", warnings) for name, value in named.items()}
        found[key] = {name: mode for name, mode in modes.items() if mode is not None}
    for name, mode in found["categories"].items():
        if name not in CATEGORIES and (near := did_you_mean(name, CATEGORIES)):
            said = f"{name[:40]!r} is no built-in category{near} It holds for all until it is corrected."
            warnings.append(f"{where}.categories: {said}")
            general = strictest([general, mode])
    projects = {" ".join(name.split()).casefold(): mode for name, mode in found["projects"].items()}
    return Modes(general, MappingProxyType(projects), MappingProxyType(found["categories"])), warnings


def _mode(value: object, where: str, warnings: list[str]) -> Mode | None:
    """Return the mode that a value means; None where nothing is said."""
    if value is None:
        return None
    if str(value) in _OFF:
        return "manual"
    known: Mode | None = next((mode for mode in MODES if mode == value), None)
    if known is None:
        near = did_you_mean(str(value)[:40], MODES) or "."
        warnings.append(f"{where[:100]} is not one of {', '.join(MODES)}{near} {_OUTCOME}")
    return known or "manual"
