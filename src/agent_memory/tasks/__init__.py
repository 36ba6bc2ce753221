"""Steps of work in the background: what is due, how far each step is, and who does it. Knows no step."""
