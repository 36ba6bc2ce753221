"""Invisible and control characters, as parts of regular expressions.

Invisible is what Unicode calls default ignorable (`Default_Ignorable_Code_Point` in DerivedCoreProperties.txt of the
Unicode Character Database), the annotation marks among the format characters, and letters that are blank. Format
characters that show a glyph, such as the Arabic number signs, are not invisible. Some default ignorable characters are
needed in their place: variation selectors of emoji (`Extended_Pictographic` in emoji-data.txt), joiners of emoji and
of scripts that join letters, selectors of Mongolian letters, tags of the three flags. `MISPLACED` finds the others.
"""

from __future__ import annotations

from typing import Final


def _build_class(ranges: str) -> str:
    """Return hexadecimal code point ranges as the inside of a class."""
    ends = (part.partition("-") for part in ranges.split())
    return "".join(rf"\U{int(first, 16):08x}-\U{int(last or first, 16):08x}" for first, _, last in ends)


BREAKING: Final = _build_class("0-8 B-1F 7F-9F 2028 2029 2800")
"""C0 without tab and newline, DEL, C1, line separators, and the blank of Braille."""
UNSEEN: Final = _build_class(
    """
    AD 34F 61C 115F-1160 17B4-17B5 200B 200E-200F 202A-202E 2060-206F 3164 FE00-FE0D FEFF FFA0 FFF0-FFFB 16FE4
    1BCA0-1BCA3 1D159 1D173-1D17A E0000-E0FFF
    """
)
"""Default ignorable without the placed ones; annotation marks; the Khitan filler and the null note head are blank."""
REORDERING: Final = _build_class("202A-202E 2066-2069")
"""Embeddings, overrides and isolates of Unicode's bidirectional algorithm: they reorder what a person reads."""
SPACES: Final = _build_class("A0 1680 2000-200A 202F 205F 3000")
"""Space separators (Zs) other than the plain space; a row of several kinds can hold a text."""
PLACED: Final = _build_class("180B-180F 200C-200D FE0E-FE0F 13430-1343F")
"""Invisible characters that are needed in some places."""
_PICTURES: Final = _build_class(
    """
    A9 AE 203C 2049 2122 2139 2194-2199 21A9-21AA 231A-231B 2328 23CF 23E9-23F3 23F8-23FA 24C2 25AA-25AB 25B6 25C0
    25FB-25FE 2600-2604 260E 2611 2614-2615 2618 261D 2620 2622-2623 2626 262A 262E-262F 2638-263A 2640 2642
    2648-2653 265F-2660 2663 2665-2666 2668 267B 267E-267F 2692-2697 2699 269B-269C 26A0-26A1 26A7 26AA-26AB
    26B0-26B1 26BD-26BE 26C4-26C5 26C8 26CE-26CF 26D1 26D3-26D4 26E9-26EA 26F0-26F5 26F7-26FA 26FD 2702 2705
    2708-270D 270F 2712 2714 2716 271D 2721 2728 2733-2734 2744 2747 274C 274E 2753-2755 2757 2763-2764 2795-2797
    27A1 27B0 27BF 2934-2935 2B05-2B07 2B1B-2B1C 2B50 2B55 3030 303D 3297 3299 1F000-1F1E5 1F200-1F3FA 1F400-1FAFF
    """
)
_JOINING: Final = _build_class(
    """
    620-6FF 700-DFF 1000-109F 1780-17D3 1807-180A 1820-18AA 1A20-1AAD 1B00-1BFF A840-A877 A880-A8F1 A980-A9C0
    AA60-AA7F ABC0-ABEF FB50-FDFF FE70-FEFC 10AC0-10AFF 10D00-10D3F 11000-11FFF 1E900-1E95F
    """
)
"""Letters and marks of Arabic, Syriac, Mongolian and the scripts of India: a joiner after one changes its shape."""
_MONGOLIAN: Final = _build_class("1820-18AA")
_HIEROGLYPHS: Final = _build_class("13000-1345F")
_END_OF_EMOJI: Final = _PICTURES + _build_class("FE0F 1F3FB-1F3FF 20E3")
_SELECTORS: Final = "[\ufe0e\ufe0f]"
_JOINERS: Final = "[\u200c\u200d]"

MISPLACED: Final = (
    rf"{_SELECTORS}(?<![{_PICTURES}]{_SELECTORS})(?<![0-9#*]\ufe0f(?=\u20e3))"
    rf"|{_JOINERS}(?<![{_JOINING}]{_JOINERS})(?<![{_END_OF_EMOJI}]\u200d(?=[{_PICTURES}]))"
    rf"|[\u180b-\u180f](?<![{_MONGOLIAN}][\u180b-\u180f])"
    rf"|[\U00013430-\U0001343f](?<![{_HIEROGLYPHS}][\U00013430-\U0001343f])"
)
"""Part of a regular expression: an invisible character in a place where nothing needs it."""
FLAG: Final = "\U0001f3f4(?:{})\U000e007f".format(
    "|".join("".join(chr(0xE0000 + ord(letter)) for letter in name) for name in ("gbeng", "gbsct", "gbwls"))
)
"""Flags of England, Scotland and Wales: the only sequences with tags that Unicode recommends."""
ROLE_MARKER: Final = (
    r"<(?=[|\uff5c][^|\uff5c<>\n]{1,40}[|\uff5c]>|</?sys>>|/?s>|(?:start|end)_of_turn>)|\[(?=/?inst\])"
    r"|(?<=\n\n)(?:human|assistant)(?=:)"
)
"""Beginning of a token by which a chat format marks roles and turns, for `re.IGNORECASE`.

ChatML, Llama 2 and 3, Mistral, Gemma, DeepSeek, harmony, and the turns of Anthropic's text completions.
"""
