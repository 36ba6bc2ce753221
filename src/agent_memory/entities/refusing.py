"""What looks like a name to the model or by its capitals, and is none: code, headers, labels of a page. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agent_memory.entities.tagger import known_names, word_lists

if TYPE_CHECKING:
    from agent_memory.entities.mention import Mention

_CODE_PARTS: Final = (
    "Views?|ViewSet|Serializer|Controller|Middleware|Factory|Handler|Manager|Models?|Forms?|Widget|Components?|Provider|"
    "Tests?|TestCase|Spec|Error|Exception|Warning|Interrupt|Service|Repository|Config|Configuration|Context|Hook|Reducer|"
    "Store|Schema|D[Tt][Oo]|Entity|Interface|Impl|Builder|Adapter|Wrapper|Helper|Utils?|Mixin|Decorator|Listener|"
    "Observer|Events?|Request|Response|Params|Props|State|Action|Button|Modal|Dialog|Page|Screen|Layout|List|Table|Card|"
    "Item|Panel|Menu|Input|Select|Row|Cell|Map|Set|Type|Enum|Id|ID|Key|Name|Task|Job|Validator|Parser|Loader|Writer|"
    "Reader|Resolver|Router|Route|Guard|Filter|Module|Processor|Scheduler|Runner|Scorer|Generator|Converter|Formatter|"
    "Callback|Delegate|Exporter|Importer|Registry|Strategy|Policy|Command|Query|Iterator|Node|Buffer|Stream|Options|"
    "Fragment|Activity|Settings|Machine|Calendar|Formula|Picker|Chart|Client|Server|Session|Window|Bar|Field|Icon|Image|Text|Label|Container|Section|Header|Footer|Sidebar|Navbar|Data|Info|Result|Status"
)
_CODE: Final = re.compile(
    rf"(?:[A-Z][a-z0-9]*)*[a-z0-9](?:{_CODE_PARTS})|(?:[A-Z][a-z0-9]+){{3,}}|[a-z]+[A-Z](?=\w*[A-Z])\w*"
)
_HEADER: Final = re.compile(
    r"(?:X|Content|Accept|Cache|Access|If|Set|User|Retry|WWW|Proxy|Strict|Transfer|Last|Idempotency|Request|Correlation|"
    r"Sec|ETag|Origin)(?:-[A-Z][A-Za-z]+)+|(?:[A-Z][A-Za-z]*-)+(?:Id|ID|Key|Type|Token|Policy|Agent|Encoding|Control|"
    r"Length|Signature|Version|Limit|Remaining|Reset|After|Options|For|Proto)"
)
_LABELLED: Final = re.compile(
    r"[\"'\u201d*`]*\s+(?:sections?|pages?|tabs?|buttons?|menus?|screens?|panels?|dialogs?|modals?|headings?|columns?|"
    r"fields?|checkbox(?:es)?|dropdowns?|views?|steps?|labels?|options?|widgets?|popups?|forms?)\b",
    re.IGNORECASE,
)
BEGINS: Final = re.compile(
    r"(?:^|[.!?:\n\u2026]|\s-|[^\w\s,;'\"\u2018-\u201f()/&@+%.-])[^\w,;&@/]{0,16}(?:\d{1,2}[.)]\W{0,16})?$"
)
"""Before a word that has its capital only since something begins: a sentence, an item, a cell, what is bold."""
_MARKED: Final = re.compile(r"(?:[*|#\]>]|(?:^|\n)\s{0,16}(?:-|\d{1,2}[.)])|[^\x00-\u024f\u2010-\u201f])\s{0,16}$")
_DETERMINED: Final = re.compile(r"\s+(?:an?|the|all|every|each|any|your|my|our|this|these|those|it|them)\b")
"""Behind a word that opens a sentence: it is what to do with that, and no name."""
_TITLED: Final = re.compile(r"\b(?:Mrs?|Ms|Dr|Prof)\.?\s$")
_LOOK_BACK: Final = 16
_LEAST, _LEAST_LISTED = 0.5, 0.35
"""Below this more names of the model are wrong than right; the second one is for those that a list or a title has."""
_DOUBTFUL_MARKED: Final = 0.85
"""As `_DOUBTFUL`, in headings, cells and items of Markdown."""
_ACRONYM: Final = 6
_DOUBTFUL: Final = 0.7
"""Below this the model is hardly ever right on a known word that opens a sentence (development part of the posts)."""
_IN_USE: Final = 3
"""Power of ten from which on a word is in use."""
_KEPT_LISTS: Final = ("given", "city", "country")


def is_refused(text: str, mention: Mention) -> bool:
    """Whether what was taken for a name is a part of a program, of a page or a common noun that opens a sentence."""
    name = mention.name
    least = _LEAST_LISTED if _is_confirmed(text, mention) else _LEAST
    if mention.confidence < least or _CODE.fullmatch(name) or _HEADER.fullmatch(name):
        return True
    words = name.lower().split()
    if _LABELLED.match(text, mention.end) and all(_is_common(word) for word in words):
        return True
    if mention.rule == "capital":
        return (name.isupper() and len(name) > _ACRONYM) or text.startswith(":", mention.end) or is_compound(name)
    is_marked = _MARKED.search(text[max(0, mention.start - _LOOK_BACK) : mention.start]) is not None
    if len(words) > 1:
        return is_marked and mention.confidence < _DOUBTFUL and not any(map(_is_listed, words))
    return _opens(text, mention) and _is_none_that_opens(text, mention, is_marked=is_marked)


def _is_none_that_opens(text: str, mention: Mention, *, is_marked: bool) -> bool:
    """Whether a single word that opens a sentence is no name: it says what to do with what follows, or is in use."""
    small = mention.name.lower()
    if _DETERMINED.match(text, mention.end):
        return not _is_listed(small)
    return mention.confidence < (_DOUBTFUL_MARKED if is_marked else _DOUBTFUL) and _is_common(small)


def is_compound(name: str) -> bool:
    """Whether a name with capitals within is made of words in use, as names in programs are: `DockCalendar`."""
    often = word_lists().frequency
    parts = re.findall(r"[A-Z][a-z0-9]*", name)
    return len(parts) > 1 and " " not in name and all(often.get(part.lower(), 0) >= _IN_USE for part in parts)


def _is_confirmed(text: str, mention: Mention) -> bool:
    """Whether a list has the whole of a name, or a title stands before it."""
    return (
        _is_listed(mention.name.lower()) or _TITLED.search(text, max(0, mention.start - 6), mention.start) is not None
    )


def _is_common(small: str) -> bool:
    """Whether a word is in use and no list of names has it."""
    return small in word_lists().frequency and not _is_listed(small)


def _is_listed(small: str) -> bool:
    names = known_names()
    return any(small in names[each] for each in _KEPT_LISTS)


def _opens(text: str, mention: Mention) -> bool:
    """Whether a word has its capital only since it begins a sentence, here and wherever else it stands."""
    name = mention.name
    if not name[:1].isupper() or name.isupper() or not name.isalpha():
        return False
    return name not in _find_amid(text)


@lru_cache(maxsize=2)
def _find_amid(text: str) -> frozenset[str]:
    """Return words with a capital that occur inside a sentence."""
    words = (match for match in re.finditer(r"\w+", text) if match[0][0].isupper())
    return frozenset(
        word[0] for word in words if not BEGINS.search(text[max(0, word.start() - _LOOK_BACK) : word.start()])
    )
