"""Times that a text names: dates, days of the week, "two weeks ago", "since March 2024", "from May to July 2023".

Tokens with tags of a lexicon, and three rounds of rules over the row of tags: what names days by itself, what words
add to that, what bounds it. Pure functions of the text and the moment it was said.
"""

from agent_memory.times.reading.mention import TimeMention
from agent_memory.times.reading.reading import times_in
from agent_memory.times.reading.validity import Validity, valid_times

__all__ = ["TimeMention", "Validity", "times_in", "valid_times"]
