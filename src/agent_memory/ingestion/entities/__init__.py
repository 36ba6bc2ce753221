"""Who and what texts speak of: drawn by rules or a model, compared with what is known, kept, read, forgotten."""
