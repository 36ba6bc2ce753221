"""How an agent's memory grows: what takes how long with how many memories. Exits with 1 when a budget is missed."""
