"""Charts place values where they belong, and can be told apart without colour."""

import re

import pytest

from arise.report.dashboard.charts import Table
from arise.report.dashboard.charts.bars import BARS_ON_CHART, binned, stacked_bars
from arise.report.dashboard.charts.lines import Line, line_chart
from arise.report.dashboard.charts.palette import _amount, ink_on, viridis
from arise.report.dashboard.charts.split import mask_strip
from arise.report.dashboard.charts.svg import Scale, element
from arise.report.dashboard.pages.sampler import beta_interval
from arise.run.chunks import Mask


def luminance(colour: tuple[int, ...]) -> float:
    parts = [c / 255 / 12.92 if c / 255 <= 0.03928 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("share", [n / 40 for n in range(41)])
def test_numbers_on_the_colour_scale_can_be_read(share: float) -> None:
    ground = luminance(_amount(share))
    ink = 0.0 if ink_on(share) == "ink-dark" else 1.0
    contrast = (max(ground, ink) + 0.05) / (min(ground, ink) + 0.05)
    assert contrast >= 4.5


def test_the_scale_gets_lighter_all_the_way() -> None:
    shades = [luminance(_amount(n / 20)) for n in range(21)]
    assert shades == sorted(shades)
    assert viridis(-1.0) == viridis(0.0)
    assert viridis(2.0) == viridis(1.0)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 7), (3, 1000), (0, 0.003), (-2, 2), (5, 5)])
def test_ticks_are_round_and_within(low: float, high: float) -> None:
    scale = Scale(low, high, 0, 100)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 12
    assert all(scale.low - 1e-9 <= tick <= scale.high + 1e-9 for tick in ticks)


def test_elements_escape_everything() -> None:
    made = element("text", "<b>", x='"', class_="a&b")
    assert made == '<text x="&#34;" class="a&amp;b">&lt;b&gt;</text>'


def test_a_missing_value_is_a_gap() -> None:
    chart = line_chart("x", [Line("a", "#000", [(1, 0.1), (2, 0.2), (3, None), (4, 0.4), (5, 0.5)])])
    assert chart.count('class="line"') == 2
    assert chart.count("<circle") == 4


def test_lines_differ_by_more_than_colour() -> None:
    points = [(1.0, 0.1), (2.0, 0.2)]
    chart = line_chart("x", [Line(str(n), "#000", points) for n in range(4)])
    dashes = re.findall(r'class="line"(?: stroke-dasharray="([^"]*)")?', chart)
    assert len(set(dashes)) == 4


def test_many_bars_become_means_of_ranges() -> None:
    values = {"a": [float(n) for n in range(1000)]}
    bins = binned(values, list(range(1, 1001)))
    assert len(bins) <= BARS_ON_CHART
    assert bins[0][0] == 1
    assert bins[-1][1] == 1000
    assert sum((last - first + 1) * means["a"] for first, last, means in bins) == pytest.approx(sum(values["a"]))
    assert stacked_bars("x", list(range(1, 1001)), values, {"a": "#000"}).count("<rect") <= BARS_ON_CHART


def test_the_token_strip_covers_what_is_trained_on() -> None:
    mask = Mask(1000, ((100, 50), (700, 250)))
    strip = mask_strip(mask, width=400.0)
    assert 'aria-label="300 of 1000 tokens trained on"' in strip
    bars = [
        tuple(map(float, m)) for m in re.findall(r'x="([\d.]+)" y="0" width="([\d.]+)".*?opacity="([\d.]+)"', strip)
    ]
    assert sum(opacity for *_, opacity in bars) / 400 == pytest.approx(0.3, abs=0.01)
    assert mask_strip(Mask(0, ()))


def test_beta_intervals_are_those_of_the_distribution() -> None:
    from scipy.stats import beta

    for passes, fails in ((0.0, 0.0), (3.0, 10.0), (120.0, 4.0)):
        expected = beta.ppf([0.025, 0.975], 1 + passes, 1 + fails)
        assert beta_interval(passes, fails) == pytest.approx(tuple(expected), abs=2e-3)


def test_a_spreadsheet_takes_no_cell_for_a_formula() -> None:
    written = Table(("a",), [("=1+1",), ("@x",), ("-2",), (None,), (-2.5,)]).csv().splitlines()
    assert written == ["a", "'=1+1", "'@x", "'-2", "", "-2.5"] or written == ["a", "'=1+1", "'@x", "'-2", '""', "-2.5"]
