"""How much an agent knows, how that grew and what of it is used; as figures and as a picture."""

from agent_memory.care.statistics.figures import Captures, Embedded, Statistics, Used, Week
from agent_memory.care.statistics.gathering import statistics_of
from agent_memory.care.statistics.picture import as_svg, as_text

__all__ = ["Captures", "Embedded", "Statistics", "Used", "Week", "as_svg", "as_text", "statistics_of"]
