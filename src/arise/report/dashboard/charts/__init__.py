"""Charts as SVG without scripts, each with the table it was drawn from."""

from arise.report.dashboard.charts.figure import Figure, Link, OneLine, Share, Table

__all__ = ["Figure", "Link", "OneLine", "Share", "Table"]
