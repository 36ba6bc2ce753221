"""Messages of a host: what is in its context, and whose sub-session answers."""
