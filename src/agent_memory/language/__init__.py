"""Text analysis: characters, words, sentences, speakers, languages, similarity and prompt text."""
