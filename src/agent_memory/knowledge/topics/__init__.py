"""Topics: their pages as values, as Markdown and as files."""
