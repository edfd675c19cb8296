"""Agents whose turns an endpoint writes."""
