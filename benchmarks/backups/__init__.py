"""How long backups take beside processes that write, whether they are of one moment, and what a kill loses."""
