"""From a configuration to running parts. The only package that names concrete classes."""
