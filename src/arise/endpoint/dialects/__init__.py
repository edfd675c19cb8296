"""Wire formats of harnesses, each a pure translation in both directions."""
