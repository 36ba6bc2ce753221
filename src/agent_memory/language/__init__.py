"""Words, sentences, speakers and excerpts of text; what is read from its form alone."""
