"""Times read from texts: how many days are right, how many are none, and how long it takes."""
