"""Charts as SVG that needs no script: every one comes with the table it was drawn from."""

from arise.report.dashboard.charts.figure import Figure, Link, Table

__all__ = ["Figure", "Link", "Table"]
