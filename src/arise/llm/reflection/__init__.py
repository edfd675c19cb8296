"""The reflection model: new pairs from evidence, rewritten skills."""
