"""Rules for text that models write or people read: linting, redaction, escaping."""
