"""Which share of tasks a briefing makes readable what was decided about them, in at most 500 tokens."""
