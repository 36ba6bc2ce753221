"""What came in from outside, raw: resources and episodes; and what is made of it: items, topics and their pages."""
