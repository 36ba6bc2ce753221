"""Words of time by language, and the tense of the words around a date."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from functools import cache
from itertools import accumulate
from typing import Any, Final, NamedTuple


class LanguageWords(NamedTuple):
    """Words of time in one language.

    Attributes:
        words: Kind and value of each word or phrase, in lower case.
        phrases: Finds phrases of several words.
        first_words: Beginnings of phrases.
        day_first: True if 3/4 is in April, None if people of that language differ.
    """

    words: dict[str, tuple[str, Any]]
    phrases: re.Pattern[str]
    first_words: frozenset[str]
    day_first: bool | None


# Each line is a kind, then words by value. A value without "=" is 0. Kinds whose words are not their own name:
# NAME_MONTH and VERB_MONTH are words with another meaning, read as months only in a context of time; LOW_MONTH is such
#   a word in lower case. SHORT_WEEKDAY is an abbreviation, read only next to "on" or a date.
# OFFSET counts units from now: 1 is the next one. COMING_OFFSET counts days of the week from today.
# DAY_NAME counts days from now. NUM, TENS and NTH are numbers in words. VAGUE is an unsure number.
# AGO_BEFORE is "ago" in front of the number. PART_OF_DAY and PART_OF_YEAR name parts.
# EVERY, MEASURE and LABEL make what is next to them no date.
_WORDS: Final = {
    "en": """
MONTH 1=january 2=february,feb 7=july 9=september,sept 10=october,oct 11=november,nov 12=december
NAME_MONTH 4=april,apr 6=june,jun 7=jul 8=august,aug 9=sep 12=dec
VERB_MONTH 1=jan 3=march,mar 5=may
WEEKDAY 0=monday 1=tuesday,tues 2=wednesday,weds 3=thursday,thurs,thur 4=friday 5=saturday 6=sunday
SHORT_WEEKDAY 0=mon 1=tue 2=wed 3=thu 4=fri 5=sat 6=sun
UNIT day=day,days week=week,weeks month=month,months quarter=quarter,quarters year=year,years decade=decade,decades
UNIT weekend=weekend,weekends fortnight=fortnight,fortnights half=half
TIME_UNIT 3600=hour,hours,hr,hrs 60=minute,minutes,min,mins 1=seconds,secs
SEASON 3=spring 6=summer 9=autumn,fall 12=winter
PART_OF_YEAR q1=q1 q2=q2 q3=q3 q4=q4 h1=h1 h2=h2
OFFSET 0=this,current 1=next,following -1=last,previous
COMING_OFFSET 1=coming,upcoming,this_coming,this_upcoming -1=past,this_past
DAY_NAME 0=today,tonight 1=tomorrow,tmr -1=yesterday -2=day_before_yesterday,the_day_before_yesterday
DAY_NAME 2=day_after_tomorrow,the_day_after_tomorrow
NUM 1=one 2=two 3=three 4=four 5=five 6=six 7=seven 8=eight 9=nine 10=ten 11=eleven 12=twelve 13=thirteen 14=fourteen
NUM 15=fifteen 16=sixteen 17=seventeen 18=eighteen 19=nineteen
TENS 20=twenty 30=thirty 40=forty 50=fifty 60=sixty 70=seventy 80=eighty 90=ninety
NTH 1=first 2=second 3=third 4=fourth 5=fifth 6=sixth 7=seventh 8=eighth 9=ninth 10=tenth 11=eleventh 12=twelfth
NTH 13=thirteenth 14=fourteenth 15=fifteenth 16=sixteenth 17=seventeenth 18=eighteenth 19=nineteenth 20=twentieth
NTH 30=thirtieth
VAGUE 6=few,several 4=couple
PART_OF_DAY morning,afternoon,evening,night,noon,midnight,lunchtime
AGO ago
LATER later
EARLIER earlier
ARTICLE_A 1=a,an
THE the
OF of
IN in,during,throughout
ON on
AT at,around,about
FOR for
FROM from
TO to,through,thru
UNTIL until,till,up_to,as_late_as
SINCE since,starting,beginning,as_of,as_early_as
WEEK_OF w/c,week_commencing,week_beginning,week_starting,week_starting_on
BEFORE before,prior_to
AFTER after
BY by,ending
BETWEEN between
AND and
OR or
MORE greater,onwards,onward,newer
LESS older
THAN than
NO no,not
END end
REST rest,remainder
EARLY early,beginning_of,start_of
LATE late
MID mid,middle
END_OF day=eod,cob,end_of_day,close_of_business week=eow month=eom year=eoy
CALENDAR_WEEK cw,kw,calendar_week
OCLOCK o'clock,oclock
EVERY every,each,any,another,fiscal,financial,academic
MEASURE ms,kb,mb,gb,px,km,kg,rpm,usd,eur,percent
LABEL version,release,build,ticket,issue,port,page,chapter,line,error,room,bug,rfc,tag
NOW now
""",
    "de": """
MONTH 1=januar,jänner 2=februar,feb 3=märz,mrz 4=april 5=mai 6=juni 7=juli 8=august 9=september,sept 10=oktober,okt
MONTH 11=november,nov 12=dezember,dez
WEEKDAY 0=montag 1=dienstag 2=mittwoch 3=donnerstag 4=freitag 5=samstag,sonnabend 6=sonntag
UNIT day=tag,tage,tagen,tages week=woche,wochen month=monat,monate,monaten,monats quarter=quartal,quartale,quartalen
UNIT quarter=quartals year=jahr,jahre,jahren,jahres weekend=wochenende,wochenendes
TIME_UNIT 3600=stunde,stunden 60=minute,minuten
SEASON 3=frühling,frühjahr 6=sommer 9=herbst 12=winter
OFFSET 0=dieser,diese,dieses,diesen,diesem 1=nächster,nächste,nächstes,nächsten,kommende,kommenden,kommendes,kommender
OFFSET -1=letzter,letzte,letztes,letzten,vergangene,vergangenen,vergangenes,vorige,vorigen,voriges
DAY_NAME 0=heute 1=morgen -1=gestern 2=übermorgen -2=vorgestern
NUM 1=ein,eine,einen,einem,einer 2=zwei 3=drei 4=vier 5=fünf 6=sechs 7=sieben 8=acht 9=neun 10=zehn 11=elf 12=zwölf
NTH 1=ersten,erster,erste 2=zweiten,zweite 3=dritten,dritte 4=vierten,vierte
PART_OF_DAY vormittag,mittag,nachmittag,abend,nacht,früh
AGO_BEFORE vor
LATER später
EARLIER früher
OF des,der
IN in,im
ON am,den
AT um,gegen
THE die,das,dem,dieser
AND und
BETWEEN zwischen
FROM von,vom
UNTIL bis
SINCE seit,ab
AFTER nach
EARLY anfang,beginn
MID mitte
END ende
CALENDAR_WEEK kw,kalenderwoche
OCLOCK uhr
EVERY jeden,jede,jedes
""",
    "es": """
MONTH 1=enero 2=febrero 3=marzo 4=abril 5=mayo 6=junio 7=julio 8=agosto 9=septiembre,setiembre 10=octubre
MONTH 11=noviembre 12=diciembre
WEEKDAY 0=lunes 1=martes 2=miércoles 3=jueves 4=viernes 5=sábado 6=domingo
UNIT day=día,días week=semana,semanas month=mes,meses quarter=trimestre,trimestres year=año,años
UNIT weekend=fin_de_semana
SEASON 3=primavera 6=verano 9=otoño 12=invierno
OFFSET 0=este,esta 1=próximo,próxima,próximos,próximas,siguiente -1=último,última,últimos,últimas,pasado,pasada
DAY_NAME 0=hoy 1=mañana -1=ayer -2=anteayer,antes_de_ayer 2=pasado_mañana
NUM 1=un,una 2=dos 3=tres 4=cuatro 5=cinco 6=seis 7=siete 8=ocho 9=nueve 10=diez 11=once 12=doce
AGO_BEFORE hace
AGO atrás
OF de,del
IN en
ON el
THE la,los,las
AND y
BETWEEN entre
TO a,al
UNTIL hasta
SINCE desde
BEFORE antes_de
AFTER después_de
EARLY principios,comienzo
MID mediados
END fin,final,finales,fines
EVERY cada,todos
""",
    "fr": """
MONTH 1=janvier 2=février 3=mars 4=avril 5=mai 6=juin 7=juillet 8=août 9=septembre 10=octobre 11=novembre 12=décembre
WEEKDAY 0=lundi 1=mardi 2=mercredi 3=jeudi 4=vendredi 5=samedi 6=dimanche
UNIT day=jour,jours week=semaine,semaines month=mois quarter=trimestre,trimestres year=an,ans,année,années
UNIT weekend=weekend,week-end
SEASON 3=printemps 9=automne 12=hiver
OFFSET 0=ce,cette 1=prochain,prochaine,prochains,prochaines -1=dernier,dernière,derniers,dernières,passé,passée
DAY_NAME 0=aujourd'hui,aujourd\u2019hui 1=demain -1=hier -2=avant-hier 2=après-demain
NUM 1=un,une 2=deux 3=trois 4=quatre 5=cinq 6=six 7=sept 8=huit 9=neuf 10=dix 11=onze 12=douze
NTH 1=premier
AGO_BEFORE il_y_a
OF de,du,d
IN dans,en
ON le
THE la,les,l
AND et
BETWEEN entre
TO à,au
UNTIL jusqu'à,jusqu'au,jusqu'en
SINCE depuis,dès
AFTER après
BEFORE avant
EARLY début
END fin
EVERY chaque,tous
""",
}
_FREQUENT: Final = {
    "en": "the and of to is was in that for on with it at by not be are this have he she we they you",
    "de": "der die das und ist nicht ich ein eine zu mit auf den dem im am wir seit vor nach bei war hat er sie bis",
    "es": "el la los las y es que un una del por con para en se no al desde fue está hace nos su hasta",
    "fr": "le la les et est un une des que dans pour du je au ne pas avec depuis sur il elle nous vous a",
}
_WORD: Final = re.compile(r"[^\W\d_]+")
_READ_CHARS: Final = 400
"""Characters that decide the language of a text."""


@cache
def get_vocabulary(language: str) -> LanguageWords:
    """Return the words of a language such as "de-AT", English by default."""
    language = language[:2].lower() if language[:2].lower() in _WORDS else "en"
    words: dict[str, tuple[str, Any]] = {}
    for line in _WORDS[language].split("\n"):
        kind, *groups = line.split() or [""]
        for group in groups:
            value, _, names = group.rpartition("=")
            for name in names.split(","):
                words[name.replace("_", " ")] = (
                    kind,
                    int(value or 0) if value.lstrip("-").isdigit() or not value else value,
                )
    phrases = sorted((re.escape(word) for word in words if not word.isalpha()), key=len, reverse=True)
    first_words = frozenset(_WORD.match(word)[0] for word in words if not word.isalpha())  # type: ignore[index]
    return LanguageWords(words, re.compile("|".join(phrases)), first_words, None if language == "en" else True)


@cache
def _list_words() -> dict[str, set[str]]:
    return {language: {*words.split(), *get_vocabulary(language).words} for language, words in _FREQUENT.items()}


def detect_language(text: str) -> str:
    """Return the language of a text, English by default.

    This package imports no other, so it counts frequent words and words of time itself.
    """
    words = _WORD.findall(text[:_READ_CHARS].lower())
    known_words = _list_words()
    return max(known_words, key=lambda language: sum(word in known_words[language] for word in words))


_AHEAD: Final = {
    "en": r"\b(?:will|won['\u2019]t|shall|can|can['\u2019]t|could\s+(?:you|we|i)|might|should|must|going\s+to|gonna"
    r"|let['\u2019]s|please|would|plans?\s+to|see\s+you|(?:scheduled|planned|expected)\s+(?:for|on|by)|arrange|remind|schedule|available|due|deadline|eod|cob"
    r"|end\s+of\s+day|close\s+of\s+business)\b|['\u2019]ll\b"
    r"|\bto\s+(?!(?:the|an?|my|our|his|her|their|its?|this|that|us|me|him|them|you)\b)(?-i:[a-z]{2,20})\b",
    "de": r"\b(?:werde|wirst|wird|werden|werdet)\b",
    "es": r"\b(?:voy|vas|va|vamos|van)\s+a\b",
    "fr": r"\b(?:vais|vas|va|allons|allez|vont)\s+\w{1,20}(?:er|ir|re)\b",
}
_PAST: Final = {
    "en": r"\b(?:was|were|wasn['\u2019]t|weren['\u2019]t|did|didn['\u2019]t|had|hadn['\u2019]t|been|has|ago|yesterday"
    r"|began|bought|broke|brought|built|came|chose|drank|drove|ate|fell|felt|flew|forgot|found|gave|got|grew|heard|held"
    r"|kept|knew|left|lost|made|met|paid|ran|said|sat|saw|sent|slept|sold|spent|spoke|stood|taught|thought|told|took"
    r"|went|won|wrote)\b"
    r"|(?<!\bbe )(?<!\bare )(?<!\bis )(?<!\bbeing )(?<!['\u2019]s )(?<!['\u2019]re )(?<!\bget )(?<!\bthe )"
    r"\b[a-z]{2,20}[^\We]ed\b",
    "de": r"\b(?:war|warst|waren|hatte|hatten|wurde|wurden|gestern)\b",
    "es": r"\b(?:fue|fui|fueron|era|eran|estaba|estuvo|hubo|había|ayer|\w{2,20}(?:ó|aron|ieron))\b",
    "fr": r"\b(?:était|étaient|étions|avait|avaient|fut|hier)\b",
}
"""Verbs of closed classes, infinitives, frequent irregular pasts, and endings of regular pasts."""
_CUES: Final = {
    language: re.compile(rf"(?P<ahead>{ahead})|(?P<past>{_PAST[language]})", re.IGNORECASE)
    for language, ahead in _AHEAD.items()
}
_SENTENCE_END: Final = re.compile(r"[.!?;](?=\s{1,9}[^\Wa-z\d_]|\s{0,9}$)|\n")
CLAUSE_BREAK: Final = re.compile(
    r",|\b(?:and|but|because|that|which|who|when|while|und|aber|weil|dass|y|pero|que|et|mais)\b", re.IGNORECASE
)


class TenseReader:
    """Tense at each place of a text.

    The verbs of the sentence decide, on either side of the date. If they differ, those of the date's own clause do; if
    these differ as well, or no verb exists, the tense is unknown.

    Args:
        text: Text to read.
        language: Such as "en".
    """

    def __init__(self, text: str, language: str) -> None:
        cues = [*_CUES.get(language, _CUES["en"]).finditer(text)]
        self._places = [cue.start() for cue in cues]
        self._ahead = [0, *accumulate(cue["ahead"] is not None for cue in cues)]
        self._sentences = [match.end() for match in _SENTENCE_END.finditer(text)] if cues else []
        self._clauses = [match.end() for match in CLAUSE_BREAK.finditer(text)] if cues else []

    def is_ahead(self, place: int) -> bool | None:
        """Return True for the future, False for the past, None if unknown."""
        if not self._places:
            return None
        start, end = _find_span(self._sentences, place)
        clause = _find_span(self._clauses, place)
        tense = self._find_tense(start, end)
        return self._find_tense(max(start, clause[0]), min(end, clause[1])) if tense is None else tense

    def _find_tense(self, start: int, end: int) -> bool | None:
        first, last = bisect_left(self._places, start), bisect_left(self._places, end)
        ahead = self._ahead[last] - self._ahead[first]
        return None if first == last or 0 < ahead < last - first else ahead > 0


def _find_span(ends: list[int], place: int) -> tuple[int, int]:
    """Return the span between two ends around a place."""
    number = bisect_right(ends, place)
    return ends[number - 1] if number else 0, ends[number] if number < len(ends) else sys.maxsize
