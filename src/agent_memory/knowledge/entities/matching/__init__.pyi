from agent_memory.knowledge.entities.matching.matcher import Matcher as Matcher
from agent_memory.knowledge.entities.matching.matcher import NearName as NearName
from agent_memory.knowledge.entities.matching.normal_forms import full_form as full_form
from agent_memory.knowledge.entities.matching.normal_forms import normal_form as normal_form
