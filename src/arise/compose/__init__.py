"""Build the parts of a run from its configuration. The only package that names concrete classes."""
