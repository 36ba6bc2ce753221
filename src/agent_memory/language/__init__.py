"""Text in human languages: characters, words, sentences, speakers, similarity, quotes and budgets. Pure."""
