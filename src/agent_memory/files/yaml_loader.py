"""Bounded loading of YAML that people edit.

Only safe types, limited depth and no repetition are accepted. libyaml's composer recurses in C without a limit: a file
of 100,000 opening brackets ends the process. Its parser does not, so its events are counted first and composed in
Python. Aliases and merge keys are refused: 500 bytes of them can fill the memory, and nothing of ours writes them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

_PARSER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_NESTING: Final = 64
"""Levels; metadata may have 16."""
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"


class BoundedComposer(yaml.composer.Composer, yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """Composer of nodes and values of a YAML text.

    Raises:
        yaml.YAMLError: The text is not YAML, or has aliases or merge keys.
        ValueError: It is nested too deeply, or has a value that Python cannot represent.
    """

    def __init__(self, text: str) -> None:
        yaml.composer.Composer.__init__(self)
        yaml.constructor.SafeConstructor.__init__(self)
        yaml.resolver.Resolver.__init__(self)
        self._events = deque(_parse_events(text))

    def check_event(self, *kinds: type[yaml.Event]) -> bool:
        """Return True if there is a next event of one of `kinds`."""
        return bool(self._events) and (not kinds or isinstance(self._events[0], kinds))

    def peek_event(self) -> yaml.Event:
        """Return the next event without removing it."""
        return self._events[0]

    def get_event(self) -> yaml.Event:
        """Remove and return the next event."""
        return self._events.popleft()


def load_yaml(text: str) -> Any:
    """Return the value of a single document, None for an empty text.

    Raises:
        yaml.YAMLError: The text is not one document of YAML, or has aliases or merge keys.
        ValueError: It is nested too deeply, or has a value that Python cannot represent.
    """
    composer = BoundedComposer(text)
    node = composer.get_single_node()
    return None if node is None else composer.construct_document(node)


def _parse_events(text: str) -> Iterator[yaml.Event]:
    depth = 0
    for event in yaml.parse(text, _PARSER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_NESTING:
            raise ValueError(f"nested deeper than {_MAX_NESTING} levels")
        if isinstance(event, yaml.AliasEvent):
            raise _build_error("aliases (*name)", event)
        if isinstance(event, yaml.ScalarEvent) and _is_merge_key(event):
            raise _build_error("merge keys (<<)", event)
        yield event


def _is_merge_key(event: yaml.ScalarEvent) -> bool:
    return event.tag == _MERGE_TAG or (event.value == "<<" and event.tag is None and event.implicit[0])


def _build_error(construct: str, event: yaml.Event) -> yaml.YAMLError:
    mark: Any = event.start_mark  # of libyaml or PyYAML, with the same attributes
    return yaml.composer.ComposerError(None, None, f"{construct} are not read here; write the value out", mark)
