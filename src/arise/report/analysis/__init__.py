"""The output of `arise analyze`: one JSON document, and a screen, a page and packages generated from it."""
