"""ARISE: train agents on what they still get wrong."""

__version__ = "0.2.0"
