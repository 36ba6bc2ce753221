"""Forms of words that no stemmer brings together: of irregular verbs, and how often something happens."""

from __future__ import annotations

from typing import Final

_VERBS: Final = """
    lead led, write wrote written, build built, hold held, teach taught, buy bought, sell sold, pay paid, draw
    drew drawn, drive drove driven, choose chose chosen, send sent, speak spoke spoken, win won, lose lost, bring
    brought, break broke broken, throw threw thrown, grow grew grown, begin began begun, sing sang sung, fly flew
    flown, wear wore worn, feed fed, meet met, sleep slept, spend spent, leave left, eat ate eaten, steal stole
    stolen, hide hid hidden
"""
BASES: Final = {form: forms.split()[0] for forms in _VERBS.split(",") for form in forms.split()[1:]}
"""The base of an irregular form."""

_DAY: Final = 86400.0
EVERY: Final = {
    "hourly": 3600.0, "daily": _DAY, "nightly": _DAY, "weekly": 7 * _DAY, "fortnightly": 14 * _DAY,
    "monthly": 30 * _DAY, "quarterly": 91 * _DAY, "yearly": 365 * _DAY, "annually": 365 * _DAY,
}  # fmt: skip
"""How many seconds pass from one time to the next."""
