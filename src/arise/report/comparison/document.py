"""A page as a list of blocks, written as Markdown, as LaTeX tables, or as one self-contained HTML file."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path


def counted(number: int, noun: str) -> str:
    """Write a count with its noun: `1 seed`, `5 seeds`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class Heading:
    """A title of level 1, 2 or 3."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Running text; `code` sets it verbatim."""

    text: str
    code: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of text below a header; `best` lists the (row, column) cells to print in bold."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    best: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Picture:
    """An SVG file with its caption."""

    path: Path
    caption: str


Block = Heading | Paragraph | Table | Picture


def to_markdown(blocks: Sequence[Block], folder: Path) -> str:
    """Return the page as Markdown; picture links are relative to `folder`."""
    return "\n\n".join(_markdown(block, folder) for block in blocks) + "\n"


def _markdown(block: Block, folder: Path) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Paragraph(text, code):
            return f"```\n{text}\n```" if code else text
        case Picture(path, caption):
            return f"![{caption}]({path.relative_to(folder).as_posix()})\n\n*{caption}*"
        case Table():
            lines = [f"*{block.caption}*", "", _row(block.header), _row(["---"] * len(block.header))]
            for r, row in enumerate(block.rows):
                lines.append(_row([f"**{cell}**" if (r, c) in block.best else cell for c, cell in enumerate(row)]))
            return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def to_latex(table: Table) -> str:
    """Return a LaTeX table in booktabs style with its caption above."""
    lines = ["\\begin{table}[htbp]", f"  \\caption{{{_tex(table.caption)}}}", "  \\centering"]
    lines += [f"  \\begin{{tabular}}{{l{'c' * (len(table.header) - 1)}}}", "    \\toprule"]
    lines += ["    " + _tex_row([_tex_bold(cell) for cell in table.header]), "    \\midrule"]
    for r, row in enumerate(table.rows):
        cells = [_tex_bold(cell) if (r, c) in table.best else _tex(cell) for c, cell in enumerate(row)]
        lines.append("    " + _tex_row(cells))
    return "\n".join([*lines, "    \\bottomrule", "  \\end{tabular}", "\\end{table}"]) + "\n"


def _tex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _tex_bold(text: str) -> str:
    return rf"\textbf{{{_tex(text)}}}"


def _tex(text: str) -> str:
    escaped = re.sub(r"([&%$#_{}])", r"\\\1", text)
    return escaped.replace("±", r"$\pm$").replace("−", "$-$").replace("–", "--")


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """Return one self-contained HTML file with embedded styles and pictures."""
    style = files("arise.report.comparison").joinpath("report.css").read_text(encoding="utf-8")
    body = "\n".join(_html(block) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{_inline(text)}</h{level}>"
        case Paragraph(text, code):
            return f"<pre>{html.escape(text)}</pre>" if code else f"<p>{_inline(text)}</p>"
        case Picture(path, caption):
            return f"<figure>\n{_svg(path, caption)}\n<figcaption>{_inline(caption)}</figcaption>\n</figure>"
        case Table():
            head = "".join(f'<th scope="col">{_inline(cell)}</th>' for cell in block.header)
            body = "\n".join(
                "<tr>" + "".join(_cell(cell, c, (r, c) in block.best) for c, cell in enumerate(row)) + "</tr>"
                for r, row in enumerate(block.rows)
            )
            return (
                f'<div class="wide"><table>\n<caption>{_inline(block.caption)}</caption>\n'
                f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>"
            )


def _cell(text: str, column: int, best: bool) -> str:
    shown = f"<strong>{_inline(text)}</strong>" if best else _inline(text)
    return f'<th scope="row">{shown}</th>' if column == 0 else f"<td>{shown}</td>"


def _inline(text: str) -> str:
    """Escape text and convert Markdown's `code` and **bold** to HTML."""
    escaped = html.escape(text)
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", escaped)


def _svg(path: Path, caption: str) -> str:
    """Return the SVG with a label for screen readers and ids that are unique on the page."""
    drawing = path.read_text(encoding="utf-8")
    drawing = drawing[drawing.index("<svg") :]
    drawing = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{path.stem}-", drawing)
    return drawing.replace("<svg", f'<svg role="img" aria-label="{html.escape(caption, quote=True)}"', 1)
