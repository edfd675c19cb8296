"""Requests to an OpenAI-compatible endpoint: one call, retries, recorded replies, limits, cost."""
