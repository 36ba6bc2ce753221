"""Items: what a text states, drawn by rules or by a language model, each with the place of its words."""
