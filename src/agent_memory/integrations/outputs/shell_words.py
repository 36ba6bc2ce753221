"""Words of a shell command, without expansion, substitution or subshell."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""[ \t]*(?:
      (?P<joined>[12]?>&[12])
      |(?P<redirect>[012&]?>>?|<)(?![<>&|])
      |(?P<end>&&|\|\||[\n;|&]|$)
      |(?P<word>(?:
          [^\s'"\\$`;&|<>(){}\[\]#]
          |'[^']*'
          |"(?:[^"\\$`]|\$\?|\\[^"\\$`\n])*"
          |\$\?
      )+)
    )""",
    re.VERBOSE,
)
_QUOTED: Final = re.compile(r"'([^']*)'|\"([^\"]*)\"")


class ShellWord(NamedTuple):
    """Word of a command without its quotes.

    Attributes:
        text: Text that the program gets, unless it is a pattern.
        is_pattern: True if the shell replaces it by the files that match.
    """

    text: str
    is_pattern: bool = False


@dataclass(slots=True)
class SimpleCommand:
    """Program with its arguments.

    Attributes:
        words: Program and arguments.
        files: Files of its redirections.
        end: Operator after it; empty for the last.
    """

    words: list[ShellWord] = field(default_factory=list)
    files: list[ShellWord] = field(default_factory=list)
    end: str = ""


def parse_commands(text: str) -> list[SimpleCommand] | None:
    """Return the simple commands, None for any other syntax."""
    commands, position, is_file = [SimpleCommand()], 0, False
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None or (is_file and token.lastgroup != "word"):
            return None
        position = token.end()
        if token.lastgroup == "word":
            (commands[-1].files if is_file else commands[-1].words).append(_build_word(token["word"]))
        elif token.lastgroup == "end":
            commands[-1].end = token["end"]
            commands.append(SimpleCommand())
        is_file = token.lastgroup == "redirect"
    return None if is_file else [command for command in commands if command.words or command.files]


def _build_word(token: str) -> ShellWord:
    text = _QUOTED.sub(lambda quoted: quoted[1] or quoted[2] or "", token)
    return ShellWord(text, is_pattern=not {"*", "?"}.isdisjoint(_QUOTED.sub("", token).replace("$?", "")))


def list_operands(
    arguments: list[ShellWord], flags: str, valued: str, long_option: re.Pattern[str]
) -> list[ShellWord] | None:
    """Return words other than options, None for an unknown option.

    Args:
        arguments: Arguments of a program.
        flags: Letters of options without a value; digits are too.
        valued: Letters of options with a value.
        long_option: Pattern of the options that begin with two dashes.
    """
    cluster = re.compile(rf"-[{flags}\d]*(?:[{valued or '-'}](.*))?", re.DOTALL)
    operands, words = [], iter(arguments)
    for word in words:
        if word.text[:1] != "-" or word.text == "-":
            operands.append(word)
            continue
        letters = cluster.fullmatch(word.text)
        is_long = word.text[:2] == "--"
        if not (long_option.fullmatch(word.text) if is_long else letters and not word.is_pattern):
            return None
        if not is_long and letters and letters[1] == "" and next(words, word).is_pattern:
            return None
    return operands
