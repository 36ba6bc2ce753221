"""Access to language models, within a budget."""
