"""Tools of a workspace for agents, without a host."""
