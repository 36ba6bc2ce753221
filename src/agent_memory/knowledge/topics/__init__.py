"""Topics: which items belong together, and the page of each with the words it rests on."""
