"""Charts as SVG without scripts, each with the table it was drawn from."""

from arise.report.dashboard.charts.figure import Figure, Link, Share, Table

__all__ = ["Figure", "Link", "Share", "Table"]
