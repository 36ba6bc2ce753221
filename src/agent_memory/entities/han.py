"""Names in Chinese and Japanese, which have neither capitals nor spaces: known places, forms of address, endings."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from agent_memory.entities.mention import Mention
from agent_memory.entities.tagger import known_names

if TYPE_CHECKING:
    from agent_memory.entities.mention import Kind

_WRITTEN: Final = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_UNSPACED: Final = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff00-\uffef]")
_HAN: Final = r"\u4e00-\u9fff"
_KATAKANA: Final = r"\u30a1-\u30fa\u30fc\u30fb"
_JAPANESE: Final = (
    rf"(?P<name>[{_HAN}]{{1,4}}|[{_KATAKANA}]{{2,40}})"
    r"(?=\u3055\u3093|\u69d8|\u6c0f|\u541b|\u3061\u3083\u3093|\u90e8\u9577|\u8ab2\u9577|\u793e\u9577)"
)
_FIRMS: Final = (
    rf"(?P<name>\u682a\u5f0f\u4f1a\u793e[{_HAN}{_KATAKANA}A-Za-z]{{2,12}}|"
    r"(?:(?![\u7ed9\u7d66\u5c0f\u7684\u4e86\u5728\u662f\u548c\u4e0e\u8207\u8fd9\u9019\u90a3\u4e2a\u500b\u5bb6\u5982\u679c\u4e00\u5df2\u5c31\u90fd\u4e5f\u5f88\u5c06\u5c07\u88ab\u4ece\u5f9e\u4e3a\u70ba\u5230\u8981\u4f1a\u6703\u80fd\u53ef\u4ee5\u6709\u65e0\u7121\u4e0d\u6211\u4f60\u4ed6\u5979\u672c\u5404\u6bcf\u67d0])"
    rf"[{_HAN}{_KATAKANA}]){{2,8}}?(?:\u516c\u53f8|\u96c6\u56e2|\u96c6\u5718|\u5927\u5b66|\u5927\u5b78|\u94f6\u884c|\u9280\u884c|"
    r"\u682a\u5f0f\u4f1a\u793e|\u533b\u9662|\u91ab\u9662))"
)
_SPOKEN_OF: Final = (
    r"\u5148\u751f|\u5973\u58eb|\u5c0f\u59d0|\u8001\u5e08|\u8001\u5e2b|\u7ecf\u7406|\u7d93\u7406|\u603b|\u8bf4|\u8aaa|\u5728|\u4f4f|"
    r"\u662f|\u559c\u6b22|\u559c\u6b61|\u8d1f\u8d23|\u8ca0\u8cac|\u7684|\u548c|\u8ddf|\u5c06|\u5c07|\u5df2|\u6b63"
)
_WRITTEN_APART: Final = (
    rf"(?<![{_HAN}])(?P<name>[{_HAN}]{{1,6}}(?:\u00b7[{_HAN}]{{1,6}})?\u00b7[{_HAN}]{{1,6}}?)"
    rf"(?={_SPOKEN_OF}|[^{_HAN}]|$)"
)
_LEFT: Final = r"(?:^|[\u3001\u3002\uff0c\uff1a\uff01\uff1f\s\u548c\u8ddf\u4e0e\u8207\u8bf7\u8acb\u7531])"

_EVERYDAY: Final = frozenset(
    "\u4e8e\u65bc\u65b9\u9ad8\u767d\u91d1\u4efb\u4e07\u842c\u4f55\u548c\u65f6\u6642\u5b89\u5e38\u6210\u5168\u660e"
    "\u6c34\u6613\u5e74\u5e73\u5143\u90fd\u5bb9\u53e4\u516c\u5411\u6587\u5305\u8ba1\u8a08\u6b65\u5173\u95dc\u80fd"
    "\u8c08\u8ac7\u8fde\u9023\u4e60\u7fd2\u666f\u901a\u522b\u5225\u76f8\u540e\u5f8c\u56fd\u570b\u4ece\u4f46\u5982"
    "\u5371\u521d\u5e08\u5e2b\u53f0\u5355\u55ae\u5e94\u61c9\u90a3\u8f66\u8eca\u5c71\u6d77\u51b7\u89e3\u5229\u7ea2"
    "\u7d05\u7a7a\u4e1c\u6771\u5145\u6ee1\u6eff\u9ebb\u5b97\u7ec8\u7d42\u8fc7\u904e\u7531\u6709\u53c8\u5728\u518d"
    "\u800c\u4e14\u5c31\u6700\u66f4\u987b\u9808\u5373"
)
"""Family names that are also among the most frequent characters."""
_KANA: Final = "[\u30a1-\u30fa\u30fc]"


def is_eastern(text: str) -> bool:
    """Whether a text has Chinese or Japanese in it."""
    return _WRITTEN.search(text) is not None


def without_han(text: str) -> str:
    """Return a text of the same length with spaces for what has no spaces around: Chinese, Japanese, Korean."""
    return _UNSPACED.sub(" ", text)


def han_in(text: str) -> list[Mention]:
    """Return known places, persons who are addressed or spoken of as such, and firms."""
    found = [_mention(text, match, "organisation", 0.8, "firm") for match in _compiled(_FIRMS).finditer(text)]
    found += [_mention(text, match, "person", 0.8, "form of address") for match in _compiled(_JAPANESE).finditer(text)]
    found += [_mention(text, match, "place", 0.85, "place") for match in _places().finditer(text)]
    for match in _compiled(_WRITTEN_APART).finditer(text):
        found.append(_mention(text, match, "person", 0.7, "name in parts"))
    found += [_mention(text, match, "person", 0.7, "family name") for match in _persons().finditer(text)]
    return found


def _mention(text: str, match: re.Match[str], kind: Kind, confidence: float, rule: str) -> Mention:
    start, end = match.span("name")
    return Mention(text[start:end], kind, start, end, confidence, rule)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _places() -> re.Pattern[str]:
    names = sorted(known_names()["han_place"], key=lambda name: (-len(name), name))
    # A place in katakana is a word of its own: more katakana beside it makes another word.
    kana = [name for name in names if re.fullmatch(_KANA + "+", name)]
    other = [name for name in names if name not in kana]
    apart = rf"(?<!{_KANA})(?:{'|'.join(kana)})(?!{_KANA})|" if kana else ""
    return re.compile(rf"(?P<name>{apart}{'|'.join(map(re.escape, other))})")


@cache
def _persons() -> re.Pattern[str]:
    listed = (name for name in known_names()["han_family"] if _WRITTEN.match(name) and name not in _EVERYDAY)
    names = sorted(listed, key=lambda name: (-len(name), name))
    family = "|".join(map(re.escape, names))
    return re.compile(rf"{_LEFT}(?P<name>(?:{family})[{_HAN}]{{1,2}}?)(?={_SPOKEN_OF})")
