"""MkDocs hooks: add the generated pages and render formulas as MathML, so that a page needs no script for them."""

import html
import re
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from scripts.docs_reference import api_page, cli_page, configuration_page

ROOT = Path(__file__).parents[1]
FORMULA = re.compile(
    r'<(?P<tag>div|span) class="arithmatex">(?:\\\[|\\\()(?P<tex>.*?)(?:\\\]|\\\))</(?P=tag)>', re.DOTALL
)
NAME = re.compile(r"<code>([^<\s]{25,})</code>")
"""A long name in code; a table could only break it in the middle of a word."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages made from code, and the documents that live at the root of the repository."""
    generated = {
        "reference/configuration.md": configuration_page(),
        "reference/cli.md": cli_page(),
        "reference/api.md": api_page(),
        "architecture.md": (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"),
    }
    for path, text in generated.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Replace each formula by MathML, and let long names break at their dots, slashes and underscores."""
    return NAME.sub(_breakable, FORMULA.sub(_mathml, content))


def _breakable(found: re.Match[str]) -> str:
    return "<code>" + re.sub(r"(\.|/|::|_)(?=\w)", r"\1<wbr>", found[1]) + "</code>"


def _mathml(found: re.Match[str]) -> str:
    block = found["tag"] == "div"
    math = convert(html.unescape(found["tex"]).strip(), display="block" if block else "inline")
    return f'<div class="formula">{math}</div>' if block else math
