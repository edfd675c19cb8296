"""ARISE: train agents on what they still get wrong."""

__version__ = "0.1.0"
