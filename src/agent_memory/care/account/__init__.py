"""An account of all that is held: about an agent, or about somebody's name; as one archive that a person can read."""

from agent_memory.care.account.archive import Account, write_account
from agent_memory.care.account.names import SearchedNames, names_of
from agent_memory.care.account.records import Holding, Lines, holdings_in

__all__ = ["Account", "Holding", "Lines", "SearchedNames", "holdings_in", "names_of", "write_account"]
