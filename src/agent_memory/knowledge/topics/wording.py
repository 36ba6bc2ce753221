"""Words that name no subject of an item."""

from __future__ import annotations

from typing import Final

_FUNCTION_WORDS: Final = """
    a about above across after against all along also although am among an and another any anybody anyone anything
    are around as at away be became because become been before behind being below beneath beside besides between
    beyond both but by can could despite did do does doing done down due during each either else enough even ever
    every everybody everyone everything everywhere few for from had has have having he hence her here hers him his
    how however i if in inside instead into is it its itself just least less like many may me might mine more most
    much must my myself near neither never no nobody none nor not nothing now nowhere of off often on once one only
    onto or other others otherwise our ours out outside over own per quite rather really s same shall she should
    since so some somebody someone something soon still such than that the their theirs them then there therefore
    these they this those though through throughout thus till to together too toward towards under unless until up
    upon us very via was we well were what whatever when whenever where whereas wherever whether which while who
    whoever whom whose why will with within without would yes yet you your yours yourself again already always
    almost anymore currently presently actually usually
"""
_OTHER_LANGUAGES: Final = """
    der das dem den des ein eine einen einem einer eines und oder aber ist sind waren wird werden wurde hat haben im als
    für mit von vom zu zum zur bei aus nach auf über unter ich wir sie er es nicht kein keine keinen keinem nie niemals
    le la les un une du de et ou est sont était être dans avec ne pas jamais nous vous il elle au aux
    el los las una del y o en por para es fue ser nunca se su sus lo gli nel della di che non è sono mai
    os um uma e do da dos das em não são foi no na
"""
"""The commonest of a few other languages; words that English has for something else are left out."""
FUNCTION_WORDS: Final = frozenset([*_FUNCTION_WORDS.split(), *_OTHER_LANGUAGES.split()])
_LIGHT_WORDS: Final = """
    use uses used using utilise utilize run runs running ran set sets setting keep keeps kept keeping have make
    makes made get gets got give gives given go goes going gone went come comes came put puts take takes taken took
    need needs needed want wants wanted like likes prefer prefers preferred work works worked working look looks see
    seen say says said tell call called know known think find found happen happens note notes noted record recorded
    thing things way ways day days time times case cases kind new old current latest previous former present recent
    first last next today change changes changed move moves moved switch switched replace replaces replaced update
    updates updated raise raised raises lower lowered upgrade upgraded return returned back become allow allows
    allowed permitted permit be stand stands lie lies live lives stay stays remain remains start starts started stop
    stops stopped begin end ends show shows shown reason reasons issue issues problem problems fact facts matter ask
    asks true false right wrong correct please remember user everyone team people
"""
LIGHT_WORDS: Final = frozenset(_LIGHT_WORDS.split())
