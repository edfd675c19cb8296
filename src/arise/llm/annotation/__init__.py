"""The annotator: task types of a corpus, and the report on it."""
