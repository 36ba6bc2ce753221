"""`COMMON`: words that any talk is full of, English and German; they tell hardly anything of what it is about."""

from __future__ import annotations

from typing import Final

_WORDS: Final = """
    a aber about after again all also always am amazing an and any anyone anything appreciate are around as at
    auch awesome back be beautiful because been being best better big bin bit both but by can can't challenge
    challenges come coming cool could couldn't das definitely der did didn't die difference different do does
    doesn't doing don't down dream dreams du each ein eine else encouragement energy enjoy enjoying er es even
    ever every everyone everything exactly excited exciting experience experiences far feel feeling feels few for
    forward from fun gave get gets getting give gives giving glad go goal goals going gonna good got grateful
    great habe had happen happened happy hard has hasn't hat have haven't he her here here's hey him his hope how
    how's i i'd i'll i'm i've ich idea if ihr impact important in incredible inspiration inspire inspired
    inspiring into is isn't ist it it'd it'll it's its ja journey joy just keep keeps kind know last let let's
    life like little look looking looks lot lots love loved loves made make makes making many matter maybe me mean
    meaningful means memories moment moments more most motivated motivation much must my myself need needed nein
    never new next nice nicht no not nothing now oder of off oh ok on one ones only or other others our out over
    own part passion passionate peace people perfect place positive positivity pretty progress put real really
    reminds rewarding right said same saw say see seeing seems sehr share she should sie since sind so some
    someone something soon special still strength stuff such super support supportive sure take taking talk tell
    than thank thanks that that's the their them then there there's these they they're thing things think thinking
    this those though thought through time times to together too totally tough truly try trying und up us use very
    want wanted war was wasn't way we we'd we'll we're we've week well went were what what's when where which
    while who why will wir wish with won't wonderful work world worth would wouldn't wow yeah year years yes yet
    you you'd you'll you're you've your yourself
"""

COMMON: Final = frozenset(_WORDS.split())
