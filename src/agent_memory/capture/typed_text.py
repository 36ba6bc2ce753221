"""Text of a message that its author wrote.

Not code, mark-up, logs, quotations, injected blocks, or pasted prose. `patterns/foreign.yaml` has the signs. Removed
lines leave an empty line.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final

from agent_memory.capture.other_authors import REMOVED, blank_other_authors
from agent_memory.capture.rules import get_pattern
from agent_memory.language.sentences import COLONS, split_sentences

if TYPE_CHECKING:
    from agent_memory.models import Episode

_MAX_BLOCK_LINES: Final = 12
_MAX_BLOCK_CHARS: Final = 800
_CUT: Final = "\x00cut\x00"
"""Mark of an element that was removed from a line, which changes the meaning of its sentence."""

_OPEN_TAG: Final = re.compile(
    r"<(script|style|system-reminder|system|memory|context|blockquote|pre|code|document|quote)\b[^<>]{0,200}>|<!--",
    re.IGNORECASE,
)
_HOST_TAG: Final = re.compile(r"(?m)^[ \t]*<([a-z]+(?:[_-][a-z]+)+)>", re.IGNORECASE)
"""`<ide_selection>` and its like at the beginning of a line: a tool between user and model wrote its content."""

_ROLE_MARKER: Final = re.compile(r"<\|[a-z_]+\|>")
"""Marker of a chat format: what follows is a transcript."""

_CODE_TAGS: Final = frozenset(("code", "pre"))
_ENDS: Final = ".!?:\n。\uff01\uff1f\uff1a"
_NEAR: Final = 200

MAX_MESSAGE_CHARS: Final = 40_000
"""What is longer was pasted; its first part is read, so that the work per message is bounded."""

MAX_OWN_CHARS: Final = 4_000
"""Of a user's message, without what shows that it was pasted. A person types no more at once: then all of it was."""

_QUOTE_LINE: Final = re.compile(r"^\s{0,3}(?:>|&gt;|\|\s)")


def separate(text: str, *, typed: bool, has_tail: bool = False) -> tuple[str, dict[str, str]]:
    """Return the author's own lines, and code blocks by placeholder line.

    A short block stays reachable: a sentence that introduces it with a colon may keep it.

    Args:
        text: One message, or what a teammate said in a tool's output.
        typed: Whether a person typed it. Then headings, labels and long even prose are signs of a paste; a model
            writes like that itself.
        has_tail: True to return the last paragraph below a document or address, too; it may be of either author.
    """
    text = _remove_elements(_ROLE_MARKER.split(text, maxsplit=1)[0]) if "<" in text else text
    lines, blocks = _remove_fences(_drop_injected(text.splitlines()))
    lines = ["" if _QUOTE_LINE.match(line) else line for line in lines]
    if typed:
        own_lines = _drop_document(_drop_announced(lines, has_tail=has_tail), has_tail=has_tail)
        lines = _drop_impersonal(_blank_machine_regions(own_lines))
    return "\n".join(line for line in lines if not is_machine_line(line)), blocks


@functools.lru_cache(maxsize=4)  # in a turn, several hooks read the same message
def get_typed_part(text: str) -> str:
    """Return the part that only the user can have typed.

    Empty for a very long message.
    """
    lines = text[:MAX_MESSAGE_CHARS].splitlines()
    typed_text, _ = separate("\n".join(lines), typed=True)
    if len(typed_text) > MAX_OWN_CHARS:
        return ""
    return _blank_long_quotations(_blank_untyped("\n".join(lines), typed_text))


def _blank_untyped(text: str, typed_text: str) -> str:
    """Blank removed lines, and those that another author may have written."""
    typed_lines = {line.strip() for line in typed_text.splitlines()} | {""}
    marked = (line if line.strip() in typed_lines else REMOVED for line in text.splitlines())
    return blank_other_authors("\n".join(marked))


def has_pasted_part(text: str) -> bool:
    """Return True if a part of a message may have been pasted."""
    return get_typed_part(text).split() != text.split()


def is_partly_pasted(turn: Episode) -> bool:
    """Return True for a user's imported turn with a pasted part.

    Its trust is that of the typed part.
    """
    return turn.role == "user" and turn.source.kind == "import" and has_pasted_part(turn.content)


def _blank_long_quotations(text: str) -> str:
    """Blank quotations of more than a few words, also open ones."""
    return _ANY_QUOTED.sub(lambda match: _hollow(match[0]) if _is_long_quotation(match[0]) else match[0], text)


def _is_long_quotation(quoted: str) -> bool:
    return len(quoted.split()) > _FEW_WORDS or (quoted[0] in "「『" and len(quoted) > _FEW_UNSPACED)


def was_cut(text: str) -> bool:
    """Return True if an element was taken out of this sentence."""
    return _CUT in text


def _remove_elements(text: str) -> str:
    """Remove comments and elements with the words of others.

    The time is linear, also for tags that never close.
    """
    folded = text.lower()
    parts: list[str] = []
    unclosed: set[str] = set()
    position = 0
    for match in sorted([*_OPEN_TAG.finditer(text), *_HOST_TAG.finditer(text)], key=re.Match.start):
        name = (match[1] or "").lower()
        closing = f"</{name}>" if name else "-->"
        if match.start() < position or closing in unclosed:
            continue
        end = folded.find(closing, match.end())
        if end < 0:
            unclosed.add(closing)
            if name:
                continue
            end = len(text)  # a comment that never closes hides the rest
        elif name in _CODE_TAGS and "\n" not in text[match.start() : end]:
            continue  # within a sentence it names a thing
        parts += [text[position : match.start()], _seam(text, match.start(), end + len(closing))]
        position = end + len(closing)
    return "".join([*parts, text[position:]])


def _seam(text: str, start: int, end: int) -> str:
    """Return the replacement of an element: a line break, or a mark."""
    before = text[max(0, start - _NEAR) : start].rstrip(" \t")
    after = text[end : end + _NEAR].lstrip(" \t")
    begins = not before or before[-1] in _ENDS
    ends = not after or after[0] == "\n" or after[0].isupper()
    return "\n" if begins and ends else _CUT


def _remove_fences(lines: list[str]) -> tuple[list[str], dict[str, str]]:
    kept_lines: list[str] = []
    blocks: dict[str, str] = {}
    inside: list[str] | None = None
    fence = ""
    for line in lines:
        match = FENCE.match(line)
        if inside is None and match:
            inside, fence = [line.strip()], match[1]
        elif inside is not None:
            inside.append(line)
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                placeholder = f"\x00block{len(blocks)}\x00"
                kept_lines.append(placeholder)
                blocks[placeholder] = _short("\n".join(inside))
                inside = None
        else:
            kept_lines.append(line)
    return kept_lines, blocks


def _short(block: str) -> str:
    small = block.count("\n") <= _MAX_BLOCK_LINES + 1 and len(block) <= _MAX_BLOCK_CHARS
    return block if small else ""


_MAX_LINE: Final = 2000
"""Characters of a line that are looked at; what makes it a machine's shows early."""

_CODE_SIGNS: Final = frozenset("{}[]()<>=;|\\/_+*&^%$#@~`")
_CODE_SHARE: Final = 0.2
_MIN_CODE_CHARS: Final = 12
_GAP: Final = 2
"""Lines between two of a machine that count as the machine's too."""

_MANY_LINES: Final = 5
_LONG_LEFT: Final = 1500
"""Characters. More than this, left over from a message that was mostly a machine's, is not separated."""

_LONG_LEAD: Final = 300
_LONG_PARAGRAPH: Final = 280
_LONG_MESSAGE: Final = 500
_ENGLISH_WORDS: Final = 4
_ENGLISH: Final = re.compile(r"\b(?:the|of|and|is|are|to|for|with|in)\b", re.IGNORECASE)
SELF: Final = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|me|my|we|we're|our|us|let's|lets|please|pls)\b|\?", re.IGNORECASE)
_FEW_HEADINGS: Final = 2
_FEW_SIGNS: Final = 3
"""Of a document; fewer may be a person's emphasis."""

_HEADING: Final = re.compile(r"^\s{0,3}#{1,6}\s+\S")
_LABEL: Final = re.compile(r"^\s*(?:[-*+•]\s+|\d{1,2}[.)]\s+)?\*\*[^*\n]{2,80}\*\*")
_RULE: Final = re.compile(r"^\s*(?:-{3,}|\*{3,}|_{3,}|={3,})\s*$")
_TITLE: Final = re.compile(r"^\s*\*\*[^*\n]{2,80}\*\*\s*$")
_EMOJI_LED: Final = re.compile(r"^\s*(?:[-*+]\s+)?[\u2190-\u21ff\u2600-\u27bf\U0001f300-\U0001faff]")


_get_sign: Final = functools.partial(get_pattern, "foreign")


def is_machine_line(line: str) -> bool:
    """Return True for a line of log, trace, terminal, code, data."""
    line = line[:_MAX_LINE]
    if line.startswith(("    ", "\t")) and not line.strip().startswith(("-", "*")):
        return True
    return (
        _get_sign("machine_line", r"\s*(?:%s)").match(line) is not None
        or _get_sign("machine_anywhere", "(?-i:%s)").search(line) is not None
        or _reads_like_code(line)
    )


def _reads_like_code(line: str) -> bool:
    bare = "".join(line.split())
    if len(bare) < _MIN_CODE_CHARS:
        return False
    return sum(character in _CODE_SIGNS for character in bare) > _CODE_SHARE * len(bare)


def _blank_machine_regions(lines: list[str]) -> list[str]:
    """Blank lines of machines, the few between, and their blocks."""
    machine = [bool(line.strip()) and is_machine_line(line) for line in lines]
    if not any(machine):
        return lines
    _bridge(lines, machine)
    _fill_blocks(lines, machine)
    kept_lines = ["" if flag else line for line, flag in zip(lines, machine, strict=True)]
    taken = sum(len(line) for line, flag in zip(lines, machine, strict=True) if flag)
    kept_chars = sum(map(len, kept_lines))
    if sum(machine) >= _MANY_LINES and taken > kept_chars:
        return _keep_ends(kept_lines, machine) if kept_chars <= _LONG_LEFT else []
    return kept_lines


def _bridge(lines: list[str], machine: list[bool]) -> None:
    """Mark the few lines between two of a machine."""
    last = -1
    between = 0
    for position, flag in enumerate(machine):
        if not flag:
            between += bool(lines[position].strip())
            continue
        if last >= 0 and 0 < between <= _GAP:
            machine[last:position] = [True] * (position - last)
        last, between = position, 0


def _fill_blocks(lines: list[str], machine: list[bool]) -> None:
    """Mark blocks that a machine mostly wrote; they have no empty line."""
    start = 0
    for position in range(len(lines) + 1):
        if position < len(lines) and lines[position].strip():
            continue
        block = machine[start:position]
        if sum(block) > len(block) / 2:
            first = start + (start == 0 and lines[0][:1].isalpha())  # it introduces what follows
            machine[first:position] = [True] * (position - first)
        start = position + 1


def _keep_ends(kept_lines: list[str], machine: list[bool]) -> list[str]:
    """Keep the lines before the first and after the last machine line."""
    first = machine.index(True)
    last = len(machine) - machine[::-1].index(True)
    return [line if position < first or position >= last else "" for position, line in enumerate(kept_lines)]


def _drop_announced(lines: list[str], *, has_tail: bool) -> list[str]:
    """Drop pasted text after words such as "Here is the page:".

    A last paragraph of the author's own stays.

    A first line may also be the address that the rest comes from, or say what to do with it ("Translate this:").
    """
    first = next((position for position, line in enumerate(lines) if line.strip()), 0)
    for position, line in enumerate(lines):
        announcement, is_tail_own = _get_sign("announces_paste").search(line[:_MAX_LINE]), False
        if announcement is None and position == first:
            announcement, is_tail_own = _get_sign("opens_paste", r"\W*(?:%s)").match(line[:_MAX_LINE]), has_tail
        if announcement is None or not (line[announcement.end() :].strip() or any(lines[position + 1 :])):
            continue
        tail = _last_words(lines, position + 1, is_own=is_tail_own)
        return [*lines[:position], line[: announcement.end()], *[""] * (tail - position - 1), *lines[tail:]]
    return lines


def _drop_document(lines: list[str], *, has_tail: bool) -> list[str]:
    """Drop a document with headings or labels.

    A heading in the opening line is enough. A last paragraph of the author's own stays.
    """
    headings = [n for n, line in enumerate(lines) if _HEADING.match(line)]
    signs = [n for n, line in enumerate(lines) if _LABEL.match(line) or _RULE.match(line) or _EMOJI_LED.match(line)]
    opening = next((line for line in lines if line.strip()), "")
    is_opening = _HEADING.match(opening) or _TITLE.match(opening)
    if not is_opening and len(headings) < _FEW_HEADINGS and len(headings) + len(signs) < _FEW_SIGNS:
        return lines
    marks = sorted([*headings, *signs])
    lead = lines[: marks[0]]
    has_section = "\n\n" in "\n".join(lines[marks[-1] + 1 :]).strip()  # else the last paragraph is all of it
    tail = _last_words(lines, marks[-1] + 1, is_own=has_tail and has_section)
    if sum(map(len, lead)) > _LONG_LEAD:
        lead = [""] * len(lead)
    return [*lead, *[""] * (tail - marks[0]), *lines[tail:]]


def _last_words(lines: list[str], start: int, *, is_own: bool) -> int:
    """Return the start of a last own paragraph, or the end.

    With `is_own`, a paragraph of one line counts whatever its words.
    """
    end = len(lines)
    while end > start and not lines[end - 1].strip():
        end -= 1
    first = end
    while first > start and lines[first - 1].strip():
        first -= 1
    stands_apart = start < first < end
    is_own = is_own and end == first + 1
    returns = stands_apart and (is_own or _get_sign("returns_to_self", r"\W*(?:%s)").match(lines[first]))
    return first if returns else len(lines)


def _drop_impersonal(lines: list[str]) -> list[str]:
    """Drop long impersonal English lines of a long message.

    They have no first person, question or request.
    """
    if sum(map(len, lines)) < _LONG_MESSAGE:
        return lines
    return ["" if _is_impersonal(line) else line for line in lines]


def _is_impersonal(line: str) -> bool:
    if len(line) < _LONG_PARAGRAPH or SELF.search(line.replace("\u2019", "'")):
        return False
    return len(_ENGLISH.findall(line)) >= _ENGLISH_WORDS


INJECTED_PREFIX: Final = "[agent-memory:"

FENCE: Final = re.compile(r"^[ \t]{0,8}(`{3,}|~{3,})")


def strip_injected(text: str) -> str:
    """Return `text` without any block that this project injected into a conversation."""
    if INJECTED_PREFIX not in text:
        return text
    lines = text.splitlines()
    kept_lines = _drop_injected(lines)
    return text if len(kept_lines) == len(lines) else "\n".join(kept_lines)


def _drop_injected(lines: list[str]) -> list[str]:
    """Drop blocks that begin with our marker line.

    They end with the fence that closes them, or with the text.
    """
    kept_lines: list[str] = []
    is_inside, fence = False, ""
    for line in lines:
        bare = line.strip()
        if not is_inside:
            is_inside = bare.startswith(INJECTED_PREFIX)
            if not is_inside:
                kept_lines.append(line)
        elif not fence:
            fence = match[1] if (match := FENCE.match(bare)) else ""
        elif bare.startswith(fence) and not bare.strip(fence[0]):
            is_inside, fence = False, ""
    return kept_lines


_SEPARATOR: Final = re.compile(r"^\s*(?:-{2,}|={3,}|\*{3,}|_{3,})\s*$")
_COMMENTED: Final = re.compile(
    r"(?im)^[^\S\n]*(?:@?[\w.-]+ (?:\([\w ]+\) )?(?:commented|wrote|replied|reviewed)"
    r"|author:\s*\S+ ?(?:\([\w ]+\))?\s*$)"
)


def read_teammate_statements(text: str) -> str:
    """Return the words of a teammate in a tool's output.

    They are in comments, hand-over notes and own post-mortems.

    Everything else a tool returns (files, pages, logs, listings) is not a teammate's statement: "".
    """
    if _get_sign("outside", r"(?<!\w)(?:%s)").search(text[:20_000]):
        return ""
    speaker, bot, label = (
        _get_sign("speaker", r"\s*(?:%s)"),
        _get_sign("bot", r"\b(?:%s)\b"),
        _get_sign("field", r"\s*(?:%s)\s*:"),
    )
    spoken: list[str] = []
    speaking = False
    seen_speaker = False
    for line in text.splitlines():
        if match := speaker.match(line):
            speaking = not bot.search(line)
            seen_speaker = seen_speaker or bool(match.lastgroup and speaking)
        elif label.match(line) or line.startswith("$ "):
            continue
        elif _SEPARATOR.match(line):
            spoken.append("")
        elif speaking:
            spoken.append(line)
    if not seen_speaker:
        return ""
    return "\n".join(spoken) if _COMMENTED.search(text) or _get_sign("internal").search(text) else ""


_MANY_SENTENCES: Final = 40
"""A longer message was pasted for the most part: its first and its last paragraph are read."""

_QUOTED: Final = re.compile(
    '"[^"]{0,4000}+"'
    "|“[^”]{0,4000}+”|„[^“”]{0,4000}+[“”]|«[^»]{0,4000}+»"
    "|\u2039[^\u203a]{0,4000}+\u203a|「[^」]{0,4000}+」|『[^』]{0,4000}+』"
    "|`[^`]{0,4000}+`"
    "|\u201a[^\u2018\u201a]{0,400}+\u2018"
    r"|(?<!\w)['\u2018](?=\S)[^'\u2018\u2019\n]{1,400}['\u2019](?!\w)"
)
_LEFT_OPEN: Final = re.compile('["“„«「『`](?:[^\n]|\n(?!\\s*\n))*')
_ANY_QUOTED: Final = re.compile(f"{_QUOTED.pattern}|{_LEFT_OPEN.pattern}")
_FEW_WORDS: Final = 4
_FEW_UNSPACED: Final = 12
_ONE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_QUESTION: Final = re.compile(r"[?\uff1f][^\w?\uff1f]*$|吗\W*$")


def is_question(sentence: str) -> bool:
    """Return True if a sentence ends in a question mark."""
    return _QUESTION.search(sentence) is not None


def list_own_sentences(message: str, *, strict: bool = True) -> list[str]:
    """Return the author's own sentences in order, quotations blanked.

    Left out: quotations and code, marked-up and injected text, lines of machines, and whatever follows the words by
    which a text of another author is reported or brought in ("here is the page", "the mail says").

    Args:
        message: As it was typed.
        strict: Leave out what follows a line that ends in a colon, too: it may be a text that was pasted.
    """
    text = message[:MAX_MESSAGE_CHARS].encode("utf-8", "replace").decode()
    typed_lines, blocks = separate(text, typed=True)
    own_lines = _blank_untyped(text, typed_lines) if strict else typed_lines
    sentences = split_sentences(blank_quotations(own_lines), blocks)
    if len(sentences) > _MANY_SENTENCES:
        ends = {sentences[0].paragraph, sentences[-1].paragraph}
        sentences = [sentence for sentence in sentences if sentence.paragraph in ends]
    own_sentences: list[str] = []
    for sentence in sentences:
        reported = get_pattern("wishes", "reported").search(sentence.masked)
        words = sentence.masked[: reported.start()] if reported else sentence.masked
        if words.strip():
            own_sentences.append(" ".join(words.split()))
        if reported or (strict and words.rstrip().endswith(COLONS)):
            break
    return own_sentences


def blank_quotations(text: str) -> str:
    """Blank quotations, except single names.

    Names are often in quotation marks.
    """
    return _LEFT_OPEN.sub(lambda match: _hollow(match[0]), _QUOTED.sub(lambda match: _blank(match[0]), text))


def _blank(quoted: str) -> str:
    inner = quoted[1:-1]
    return f" {inner} " if _ONE_NAME.fullmatch(inner.strip()) else _hollow(quoted)


def _hollow(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
