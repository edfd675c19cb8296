"""A chart with its title, legend, note and the table behind it."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

ROWS_ON_PAGE = 150


@dataclass(frozen=True)
class Link:
    """A table cell that is a link."""

    text: str
    href: str


class Share(float):
    """A share between 0 and 1: a page writes it in percent, the CSV as the number itself."""


class OneLine(str):
    """Text made of numbers, which a page does not break."""

    __slots__ = ()


Cell = str | int | float | bool | None | Link


@dataclass(frozen=True)
class Table:
    """Columns and rows; a page shows the last rows of a long one, the CSV all of them."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]

    @property
    def on_page(self) -> Sequence[Sequence[Cell]]:
        return self.rows[-ROWS_ON_PAGE:]

    def csv(self) -> str:
        """Return all rows as CSV; quote cells that a spreadsheet could read as a formula."""
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(self.columns)
        writer.writerows([[_plain(cell) for cell in row] for row in self.rows])
        return out.getvalue()


@dataclass(frozen=True)
class Figure:
    """`Figure("pass-rate", "Pass rate", svg, table, "what to look for")`; legend entries are (text, colour)."""

    id: str
    title: str
    svg: Markup
    table: Table
    note: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    wide: bool = False


def _plain(cell: Cell) -> object:
    value = cell.text if isinstance(cell, Link) else cell
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return "" if value is None else value
