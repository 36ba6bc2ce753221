"""Ways of saying how two named things stand to each other, in English and German. Plain data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agent_memory.entities.mention import Kind

_SOON: Final = (
    r"(?:\s+(?:now|currently|still|also|already|officially|recently|just|mainly|directly|all|both|jetzt|derzeit|aktuell|"
    r"auch|noch|inzwischen|direkt|mittlerweile|seit\s+(?:\w+\s+)?\d{4})){0,4}"
)
_ARTICLE: Final = r"(?:\s+(?:the|a|an|our|my|their|der|die|das|den|dem|einer|einem|unser(?:e|er|em|en)?))?"
_WHAT: Final = (
    r"(?:\s+(?:company|startup|start-up|firm|city|town|team|server|host|cluster|service|package|library|database|"
    r"Firma|Stadt|Server|Host|Dienst|Paket|Team|Bibliothek|Datenbank))?"
)
_IS: Final = r"(?:is|are|was\s+just|ist|sind|'s|\u2019s)"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Saying:
    """One way of saying a relation, in patterns that are compiled when first looked for.

    Attributes:
        between: All that stands between the two names.
        behind: What has to follow the second name; empty where nothing has to.
        turned: Whether the second name is the subject: "is owned by".
        ends: Whether it says that this is over: "quit".
    """

    between: str
    behind: str = ""
    turned: bool = False
    ends: bool = False

    def fits(self, between: str) -> bool:
        """Whether it is all that stands between two names."""
        return _compiled(self.between).fullmatch(between) is not None

    def goes_on(self, text: str, at: int, end: int) -> bool:
        """Whether what has to follow the second name follows it."""
        return not self.behind or _compiled(self.behind).match(text, at, end) is not None


@dataclass(frozen=True, slots=True)
class Verb:
    """A relation and the ways of saying it.

    Attributes:
        name: Of the relation, `works_at`.
        functional: Whether a thing has only one at a time, so that a new one ends the one before.
        sayings: How it is said.
        subject: What kind of thing the subject has to be, if that is so.
        object: As `subject`.
        never: Kinds that neither can be.
    """

    name: str
    functional: bool
    sayings: tuple[Saying, ...]
    subject: Kind | None = None
    object: Kind | None = None
    never: frozenset[Kind] = frozenset()


def saying(words: str, behind: str = "", *, turned: bool = False, ends: bool = False) -> Saying:
    """Return a saying: `words` are a pattern; adverbs, an article and a common noun may stand around them."""
    words = words.replace(r"\s+", rf"{_SOON}\s+")
    between = rf"{_SOON}\s*{words}{_SOON}{_ARTICLE}{_WHAT}\s*"
    return Saying(between, rf"\s*{behind}\b" if behind else "", turned, ends)


_NO_GATHERING: Final = (
    r"(?!\s*(?:team|project|group|club|community|channel|chat|thread|list|server|meeting|call|session|workshop|course|"
    r"class|conference|event|party|discussion|beta|stand-?up|review)s?\b)"
)
"""Behind a name: what one joins or leaves is called by the name, and not its bearer ("left the Acme meeting")."""
_THINGS: Final[frozenset[Kind]] = frozenset({"file", "host", "package", "service", "order", "issue"})

VERBS: Final = (
    Verb("works_at", functional=True, subject="person", object="organisation", never=_THINGS, sayings=(
        saying(rf"(?:works?|{_IS}\s+(?:working|employed))\s+(?:at|for)"),
        saying(r"ha(?:s|ve)\s+(?:been\s+working|worked)\s+(?:at|for)", r"since"),
        saying(r"(?:has\s+)?joined", _NO_GATHERING),
        saying(
            r"(?:has\s+|have\s+)?(?:just\s+)?(?:quit|left|resigned\s+from|retired\s+from)", _NO_GATHERING, ends=True
        ),
        saying(r"(?:has\s+|have\s+)?stopped\s+working\s+(?:at|for)", ends=True),
        saying(r"ha(?:t|be)\s+bei", r"gek\u00fcndigt", ends=True),
        saying(rf"{_IS}\s+(?:an?\s+)?(?:\w+\s+)?(?:engineer|developer|designer|manager|analyst|nurse|teacher|lawyer|"
               r"intern|consultant|researcher)\s+(?:at|for|with)"),
        saying(r"arbeite[tn]?\s+(?:bei|f\u00fcr)"),
        saying(rf"{_IS}\s+(?:bei|beim)", r"(?:angestellt|besch\u00e4ftigt)"),
        saying(r"(?:bei|f\u00fcr)", r"arbeitet"),
    )),
    Verb("lives_in", functional=True, subject="person", object="place", never=_THINGS, sayings=(
        saying(rf"(?:lives?|resides?|{_IS}\s+(?:living|residing|based))\s+(?:in|at|near)"),
        saying(r"(?:has\s+|have\s+)?(?:just\s+)?(?:moved|relocated)\s+(?:back\s+)?(?:from\s+\S+(?:\s+\S+)?\s+)?to"),
        saying(r"(?:wohn(?:t|en|e)|leb(?:t|en|e))\s+(?:in|bei)"),
        saying(r"in", r"(?:wohnt|lebt)"),
        saying(rf"(?:{_IS}|bin)\s+nach", r"(?:gezogen|umgezogen)"),
        saying(r"zog\s+nach"),
        saying(r"(?:has\s+|have\s+)?(?:just\s+)?moved\s+(?:away\s+from|out\s+of)", ends=True),
    )),
    Verb("located_in", functional=True, object="place", sayings=(
        saying(rf"{_IS}\s+(?:located|situated|headquartered|hosted)\s+(?:in|at|near)"),
        saying(r"has\s+its\s+(?:headquarters|office|seat)\s+in"),
        saying(r"(?:liegt|befindet\s+sich|sitzt|steht)\s+in"),
        saying(r"hat\s+(?:seinen|ihren)\s+Sitz\s+in"),
    )),
    Verb("manages", functional=False, never=frozenset({"order", "issue"}), sayings=(
        saying(rf"(?:manages?|leads?|heads?|{_IS}\s+(?:managing|leading|in\s+charge\s+of))"),
        saying(rf"{_IS}\s+(?:the\s+)?(?:new\s+)?(?:head|leader|lead|manager|director|CEO|CTO|chair|owner)\s+of"),
        saying(rf"{_IS}\s+(?:managed|led|headed)\s+by", turned=True),
        saying(r"(?:leitet|f\u00fchrt|verantwortet)"),
        saying(rf"(?:{_IS}|wird)\s+von", r"geleitet", turned=True),
    )),
    Verb("reports_to", functional=True, subject="person", object="person", never=_THINGS, sayings=(
        saying(r"(?:reports?|berichtet)\s+(?:to|an)"),
        saying(rf"(?:'s|\u2019s)\s+(?:manager|boss|supervisor|team\s+lead)\s+{_IS}"),
        saying(rf"{_IS}", r"(?:'s|\u2019s)\s+(?:manager|boss|supervisor|team\s+lead)", turned=True),
        saying(rf"{_IS}", r"unterstellt"),
    )),
    Verb("owns", functional=False, sayings=(
        saying(rf"(?:owns?|{_IS}\s+(?:the\s+)?owner\s+of|{_IS}\s+responsible\s+for|maintains?|"
               rf"{_IS}\s+(?:the\s+)?maintainer\s+of)"),
        saying(rf"{_IS}\s+(?:owned|maintained)\s+by", turned=True),
        saying(rf"(?:besitzt|betreut|{_IS}\s+(?:verantwortlich|zust\u00e4ndig)\s+f\u00fcr)"),
        saying(r"geh\u00f6rt", turned=True),
    )),
    Verb("depends_on", functional=False, sayings=(
        saying(r"(?:depends?|relies|rely)\s+(?:on|upon)"),
        saying(r"(?:requires?|needs?|ben\u00f6tigt|braucht)"),
        saying(r"h\u00e4ngt\s+von", r"ab"),
        saying(rf"{_IS}\s+(?:a\s+)?(?:dependency|requirement)\s+of", turned=True),
    )),
    Verb("uses", functional=False, sayings=(
        saying(rf"(?:uses?|{_IS}\s+using|{_IS}\s+built\s+(?:on|with|in)|{_IS}\s+written\s+in|{_IS}\s+backed\s+by)"),
        saying(r"(?:verwendet|nutzt|benutzt|setzt\s+auf)"),
        saying(rf"{_IS}\s+used\s+by", turned=True),
        saying(rf"{_IS}\s+in", r"geschrieben"),
    )),
    Verb("deployed_on", functional=False, sayings=(
        saying(rf"(?:runs?|{_IS}\s+(?:running|deployed|installed))\s+(?:on|to)"),
        saying(r"(?:was|were)\s+(?:deployed|moved|migrated)\s+(?:on|to)"),
        saying(r"l\u00e4uft\s+auf"),
        saying(rf"(?:{_IS}|wurde)\s+auf", r"(?:installiert|deployt|ausgerollt)"),
    )),
    Verb("married_to", functional=True, subject="person", object="person", never=_THINGS, sayings=(
        saying(rf"(?:{_IS}\s+married\s+to|married)"),
        saying(rf"(?:'s|\u2019s)\s+(?:wife|husband|spouse)\s+{_IS}"),
        saying(rf"{_IS}", r"(?:'s|\u2019s)\s+(?:wife|husband|spouse)", turned=True),
        saying(rf"{_IS}\s+mit", r"verheiratet"),
        saying(r"heiratete"),
    )),
    Verb("member_of", functional=False, object="organisation", never=_THINGS, sayings=(
        saying(rf"{_IS}\s+(?:an?\s+)?(?:\w+\s+)?(?:member|part)\s+of"),
        saying(r"belongs?\s+to"),
        saying(rf"{_IS}\s+(?:ein\s+)?Mitglied\s+(?:von|in|bei|im|des|der)"),
        saying(r"geh\u00f6rt\s+zu[mr]?"),
    )),
    Verb("replaced_by", functional=True, sayings=(
        saying(r"(?:was|were|is|are|has\s+been|have\s+been|got)\s+replaced\s+(?:by|with)"),
        saying(r"(?:has\s+|have\s+)?replace[sd]?", turned=True),
        saying(r"(?:wurden?|ist|sind)\s+durch", r"ersetzt"),
    )),
    Verb("version_of", functional=False, sayings=(
        saying(rf"{_IS}\s+(?:an?\s+|the\s+|eine?\s+)?(?:\w+\s+)?(?:version|release|fork|port|successor|Nachfolger)\s+(?:of|von)"),
    )),
)  # fmt: skip
"""Few on purpose: what is not here is not read. Callers may give others."""
