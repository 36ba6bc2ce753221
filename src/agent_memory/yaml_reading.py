"""Reading YAML that people edit: safe types only, never deeper than a stack can bear, never longer than it is written.

libyaml's composer recurses in C without a limit: a file of 100,000 opening brackets ends the process. Its parser does
not, so its events are counted first and composed in Python. Aliases and merge keys say the same thing again and again
in few letters, 500 bytes of them as much as fills the memory; nothing of ours writes them, so they are refused.
"""

from __future__ import annotations

import functools
from collections import deque
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

_PARSER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_NESTING: Final = 64
"""Metadata may have 16 levels; what is deeper was not written by us."""
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"


class BoundedComposer(yaml.composer.Composer, yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """Nodes and values of a YAML text.

    Raises:
        yaml.YAMLError: It is no YAML, or has aliases or merge keys.
        ValueError: It is nested too deeply, or holds a value that Python cannot.
    """

    def __init__(self, text: str) -> None:
        yaml.composer.Composer.__init__(self)
        yaml.constructor.SafeConstructor.__init__(self)
        yaml.resolver.Resolver.__init__(self)
        self._events = deque(_counted(text))

    def check_event(self, *kinds: type[yaml.Event]) -> bool:
        """Tell whether the next event is one of `kinds`, or whether there is one."""
        return bool(self._events) and (not kinds or isinstance(self._events[0], kinds))

    def peek_event(self) -> yaml.Event:
        """Return the next event and leave it."""
        return self._events[0]

    def get_event(self) -> yaml.Event:
        """Take the next event."""
        return self._events.popleft()


def load_yaml(text: str) -> Any:
    """Return the value of a single document, None if there is none.

    Raises:
        yaml.YAMLError: It is no YAML, more than one document, or has aliases or merge keys.
        ValueError: It is nested too deeply, or holds a value that Python cannot.
    """
    composer = BoundedComposer(text)
    node = composer.get_single_node()
    return None if node is None else composer.construct_document(node)


@functools.cache
def load_patterns(package: str, name: str) -> dict[str, Any]:
    """Return the mapping in the files `patterns/<name>.yaml` and `patterns/<name>.<part>.yaml` of a package of ours.

    They are read with libyaml where it is there, without a bound: they come from no one else.
    """
    loaded: dict[str, Any] = {}
    for file in (resources.files(package) / "patterns").iterdir():
        if file.name.partition(".")[0] == name:
            text = file.read_text(encoding="utf-8")
            loaded |= yaml.load(text, Loader=_PARSER)  # noqa: S506 - the safe loader, by a name that ruff does not follow
    return loaded


def _counted(text: str) -> Iterator[yaml.Event]:
    depth = 0
    for event in yaml.parse(text, _PARSER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_NESTING:
            raise ValueError(f"nested deeper than {_MAX_NESTING} levels")
        if isinstance(event, yaml.AliasEvent):
            raise _refused("aliases (*name)", event)
        if isinstance(event, yaml.ScalarEvent) and _merges(event):
            raise _refused("merge keys (<<)", event)
        yield event


def _merges(event: yaml.ScalarEvent) -> bool:
    return event.tag == _MERGE_TAG or (event.value == "<<" and event.tag is None and event.implicit[0])


def _refused(what: str, event: yaml.Event) -> yaml.YAMLError:
    mark: Any = event.start_mark  # libyaml's own kind or PyYAML's, which are alike
    return yaml.composer.ComposerError(None, None, f"{what} are not read here; write the value out", mark)
