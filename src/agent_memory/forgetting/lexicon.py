"""Small words, common verbs and everyday notions, as far as taking sentences apart and asking in other words need them.

English but for denials and for words of asking. None of these decides alone what is forgotten: names and identifiers
that a request gives have to be in a memory, whatever stands here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from agent_memory.forgetting.words import stems


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


DETERMINERS: Final = _set(
    "a an the my your his her its our their this that these those some any no every each both two three four"
)
PRONOUNS: Final = _set("he she it they we i you her his their its")
FIRST_PERSON: Final = _set("i me my mine myself we us our ours user user's")
PREPOSITIONS: Final = _set(
    "to in at on with for from of about by into near under over between as against via within without through"
)
DENIALS: Final = _set(
    "not never no neither nor none nobody without cannot nicht kein keine keinen nie ni pas jamais nunca sin non "
    "n't don't doesn't didn't isn't aren't wasn't weren't won't can't couldn't shouldn't wouldn't hasn't haven't"
)
AUXILIARIES: Final = _set(
    "is are was were am be been has have had does do did can could will would shall should must may might cannot "
    "isn't aren't wasn't weren't hasn't haven't doesn't don't didn't can't won't ist sind hat est a\u0300"
)
PAST: Final = re.compile(
    r"\b(?:used to|formerly|previously|until|till|was|were|had been|back then|at the time|in the past|old|former|ex|"
    r"previous|earlier|no longer|before|originally|initially)\b",
    re.IGNORECASE,
)
PRESENT: Final = re.compile(
    r"\b(?:now|currently|nowadays|these days|today|since|as of|moved to|switched to|new|latest|current|present"
    r"|is|are)\b",
    re.IGNORECASE,
)
ASKS_PAST: Final = _set("old former previous earlier original initial prior past ex outdated first")
ASKS_PRESENT: Final = _set("new current latest present newest recent now last")

SMALL: Final = _set(
    "forget forgets forgot forgetting delete remove erase purge release drop unlearn wipe clear discard scrub rid get "
    "stop remembering remember please can could would you i me my mine we us our want like need to do don't that this "
    "those these it its the a an of on in at by for from with and or as about regarding concerning around related "
    "anything everything all any every whatever whole entire fact facts thing things memory memories info information "
    "detail details entry entries record records note notes data stuff said told tell tells mentioned mention mentions "
    "may might must should would shall say says know knows known have has had is "
    "are was were be been being am do does did will what where when which "
    "who whom whose how why there here let just also ever so s t if then than one ones his her their he she they them "
    "him your yours ours into out up longer anymore more most made regarding think thinks using use used stored saved "
    "vergiss vergessen l\u00f6sche bitte alles \u00fcber von der die "
    "das was ich dir \u00fcber mein meine oublie supprime "
    "tout ce que sur le la les de du des olvida borra todo lo que sobre el los las mi"
)
"""Words of asking and pointing: they do not say what is meant."""
VAGUE: Final = _set(
    "number name date code id value time type kind user person guy someone plan plans situation matter matters topic "
    "history status arrangement arrangements issue issues problem problems trouble question setup choice choices habit "
    "habits preference preferences details update updates news needs restrictions requirements life background members "
    "information arrangements old former previous earlier original initial prior first new current latest present"
)
"""Words that say little of what is meant where others do."""

LEADS: Final = _set(
    "project team room server office department company product service module ticket sprint rule memo version dr mr "
    "mrs ms uncle aunt city customer client user host badge flight order invoice policy note step phase both professor "
    "prof captain queen king saint lady lord sir planet chapter vault locker desk card device run car"
)
"""Words before a name that only say what it is the name of."""

_VERBS: Final = _set(
    "accept add adopt advise agree allow answer apply approve arrive ask assign attend author avoid bake bear become "
    "begin believe belong bike blame book borrow bring build buy call care carry celebrate change charge check choose "
    "claim clean climb close coach collect come commute complain confirm connect contact contain cook coordinate cost "
    "cover create cycle dance decide deliver deny depend deploy deserve design detest develop dislike distrust donate "
    "draw drink drive earn eat employ enjoy enter exercise expect expire fail favor favour fear feed feel fight file "
    "fill find finish fish fix fly follow forbid garden get give go graduate grow handle hate have head hear heat help "
    "hide hike hire hold host improve include inherit insist install invest invite jog join keep kick know lack land "
    "laugh lead learn lease leave lend lie like link listen live loan lock log look lose love maintain make manage "
    "marry meet mention mentor migrate miss mount move need notice obtain occupy offer open oppose order organise "
    "organize own paint park participate pay plan plant play point practice practise prefer prepare present produce "
    "promise propose provide publish quit raise reach read receive recommend refer refuse reject relocate remain "
    "remember rent repair replace report represent require reserve resign respond rest retire return review ride run "
    "sail save say see sell send serve set share shoot shop show sing sit ski sleep smoke speak specialise specialize "
    "spend sponsor stand start stay stop store study suffer suggest supervise support surf swim switch take talk taste "
    "teach tell think tolerate train transfer translate travel treat trust try turn understand upgrade use vacation "
    "visit volunteer vote wait wake walk want watch wear weigh win wish work worry write"
)
_IRREGULAR: Final = _set(
    "became began bought brought built came chose drank drove ate fell felt flew found gave got grew heard held kept "
    "knew led left lent lost made met paid quit ran rode "
    "said sang sat saw sent sold spent spoke stood swam taught told "
    "took thought understood went woke won wore wrote broke drew"
)

_NOTIONS: Final = """
live living reside residence home address street apartment flat house move relocate city town dwell based
phone telephone cell cellphone mobile landline
email mail inbox
drive car vehicle van truck automobile motorbike motorcycle
work job employer employ profession occupation career company role position workplace
job profession occupation career nurse teacher engineer lawyer pilot chef baker plumber carpenter accountant \
designer developer programmer architect journalist farmer painter musician scientist professor dentist \
pharmacist electrician mechanic librarian surgeon actor barber translator
commute train bus subway metro tram
os operating debian ubuntu linux windows macos fedora
programming code rust python java golang typescript javascript kotlin swift ruby
divorce split separate separation separated
pregnant pregnancy baby expecting
fire fired laid dismissed dismissal redundant unemployed
name call called named
theme mode dark light
wifi wireless wlan network
release deploy deployment launch
restart reboot
salary pay paid income earn wage compensation
wife husband spouse married marry marriage wedding partner
child children kid son daughter
mother father parent mom mum dad
sibling brother sister
birthday born birth birthdate age old years
pet dog cat puppy kitten parrot hamster rabbit
allergy allergic intolerant intolerance allergen
ill illness disease sick medical health diagnosis diagnosed diagnose condition medication medicine surgery \
therapy treatment diabetes asthma migraine depression anxiety
eat food diet meal dish cuisine vegetarian vegan breakfast lunch dinner
drink beverage coffee tea beer wine
hobby pastime sport weekend leisure
school university college study studied degree graduate education student
password passcode passphrase pin credential login
bank account card credit iban payment finances financial debt loan mortgage money
meeting appointment schedule calendar
deadline due
trip travel vacation holiday flight fly flew journey
language speak fluent
religion faith church religious
politics political vote voted party
favorite favourite prefer preference like love enjoy taste
deploy deployment release rollout ship
database db postgres postgresql mysql sqlite mongodb
color colour
buy bought purchase
hate dislike detest loathe
gym exercise workout fitness
weight weigh kg pounds height tall
dating girlfriend boyfriend relationship
nationality citizen citizenship passport
boss manager supervisor reports lead
doctor dentist physician
instrument guitar piano violin drums music
editor ide vim emacs vscode
office desk room
"""
"""Words of one everyday notion, a line each."""


_GENERAL: Final = """
family relatives: wife husband spouse son daughter child kid mother father parent mom dad brother sister cousin \
uncle aunt grandfather grandmother married twins sons
contact: phone mobile email mail address telephone number
health medical: ill disease sick insulin medication medicine pills prescription doctor dr dentist hospital \
therapy allergy allergic diabetic surgery blood pain asthma migraine injury knee back diagnosed
finances financial money: salary debt loan bank account mortgage income savings earn owes budget tax pension
travel trip holiday vacation: flies flight hotel booked visa passport train airport itinerary ticket visits
phobia: afraid fear scared
diet dietary: vegetarian vegan allergic gluten dairy meat eat lactose kosher halal nuts food
movie film: film movie cinema
pet pets: dog cat puppy kitten parrot hamster rabbit horse
vehicle car: drives van bike motorbike truck parked tyres garage plate volvo toyota bmw audi tesla ford honda \
fiat
belief religion religious: church faith god mosque temple prays
work job professional employment: works employer job role company team office boss leads reports promoted hired \
intern colleague title
education educational school: studied degree university school graduated college teacher class pupils thesis
marital marriage: married wife husband divorced single spouse wedding
wedding: married bride venue guests dress ceremony
hobby hobbies interests: plays paints collects sings hikes reads gardening chess guitar piano climbs climbing \
cycles knits models
location whereabouts: lives located based address city street moved
home house housing apartment: rent landlord lease mortgage flat lives street address
stack technology: database postgres redis kafka python rust react uses framework language
deployment infrastructure: servers released deploys pipeline cluster runs hosted region
appearance: hair eyes tall beard glasses
musical music: guitar piano violin drums band sings plays
romantic relationship: girlfriend boyfriend dating married wife husband partner engaged
sleep: bed wakes sleeps insomnia
schedule: meets monday tuesday wednesday thursday friday noon daily weekly
security access: password pin passcode key code badge credentials
"""
"""General words, and what belongs to them; not the other way round: who asks for the wife does not mean the son."""


@lru_cache(maxsize=1)
def _general() -> dict[str, frozenset[str]]:
    rows = (row.partition(":") for row in _GENERAL.strip().splitlines())
    return {head: _stems_of(words) for heads, _, words in rows for head in heads.split()}


def _stems_of(words: str) -> frozenset[str]:
    return frozenset(each for word in words.split() for each in stems(word))


def belongs_to(general: str, other: frozenset[str]) -> bool:
    """Tell whether a word, by its stems, belongs to what a general word of a request means."""
    return not other.isdisjoint(_general().get(general, frozenset()))


@lru_cache(maxsize=1)
def _notions() -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, words in enumerate(_NOTIONS.strip().splitlines()):
        for word in words.split():
            for stem in stems(word):
                found.setdefault(stem, set()).add(number)
    return {stem: frozenset(numbers) for stem, numbers in found.items()}


def share_notion(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether two words, by their stems, belong to one everyday notion, such as where somebody lives."""
    notions = _notions()
    return any(notions.get(a, frozenset()) & notions.get(b, frozenset()) for a in one for b in other)


def is_base_verb(word: str) -> bool:
    """Tell whether a word is a common verb without an ending."""
    return word in _VERBS


def is_known_verb(word: str) -> bool:
    """Tell whether a word is a form of a common verb."""
    return word in _VERBS or word in _IRREGULAR or any(form in _VERBS for form in _bases(word))


def _bases(word: str) -> list[str]:
    forms = []
    for ending, instead in (("ies", "y"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", ""), ("ed", "e")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            forms.append(word[: -len(ending)] + instead)
    if word.endswith("ed") and len(word) > 4 and word[-3] == word[-4]:  # noqa: PLR2004 - "planned"
        forms.append(word[:-3])
    return forms


def base_of(word: str) -> str:
    """Return a common verb without its ending; any other word as it is."""
    return word if word in _VERBS else next((form for form in _bases(word) if form in _VERBS), word)


def looks_like_verb(word: str) -> bool:
    """Tell whether a word has the ending of a verb in a statement about somebody."""
    ends = word.endswith(("s", "ed")) and not word.endswith(("ss", "us", "'s"))
    return is_known_verb(word) or (word.isalpha() and ends)
