from agent_memory.times.date_mentions import QuestionPeriods as QuestionPeriods
from agent_memory.times.date_mentions import TimeMention as TimeMention
from agent_memory.times.date_mentions import describe_saying as describe_saying
from agent_memory.times.date_mentions import named_periods as named_periods
from agent_memory.times.date_mentions import read_periods as read_periods
from agent_memory.times.date_mentions import times_in as times_in
from agent_memory.times.days import Period as Period
