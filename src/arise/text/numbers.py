"""How numbers are written wherever a person reads them: screen, page, report, command line.

Rates have one decimal, intervals are written with "to", a missing number is a dash, and zero has no minus sign. A rate
of fewer than five evaluations is written as its counts.
"""

MISSING = "–"
FEW = 5
"""A rate of fewer evaluations is not informative: it is shown as counts, sorted last and not drawn in charts."""


def percent(share: float | None) -> str:
    """Write a share as a percentage: `38.2 %`."""
    return MISSING if share is None else f"{100 * share:z.1f} %"


def points(share: float | None) -> str:
    """Write a share in percent without the sign, for a column whose head has it: `38.2`."""
    return MISSING if share is None else f"{100 * share:z.1f}"


def counted_rate(passes: int, evaluations: int) -> str:
    """Write a rate with the counts behind it: `38.2 % (13 of 34)`, or `2 of 3`; a dash without evaluations."""
    if not evaluations:
        return MISSING
    counts = f"{passes} of {evaluations}"
    return counts if evaluations < FEW else f"{percent(passes / evaluations)} ({counts})"


def interval(low: float | None, high: float | None, signed: bool = False) -> str:
    """Write the 95 % interval of shares in percent: `95 % 22.1 to 54.9`."""
    return MISSING if low is None or high is None else f"95 % {span(low, high, signed)}"


def span(low: float, high: float, signed: bool = False) -> str:
    """Write two shares in percent as a range: `22.1 to 54.9`."""
    form = "+z.1f" if signed else "z.1f"
    return f"{100 * low:{form}} to {100 * high:{form}}"


def difference(share: float | None) -> str:
    """Write a difference of shares in percentage points: `+3.1`."""
    return MISSING if share is None else f"{100 * share:+z.1f}"


def decimal(value: float | None, digits: int = 2) -> str:
    """Write a number that is no percentage: `0.48`."""
    return MISSING if value is None else f"{value:z.{digits}f}"


def signed(value: float | None, digits: int = 2) -> str:
    """Write a number with its sign: `+0.48`."""
    return MISSING if value is None else f"{value:+z.{digits}f}"


def amount(value: float) -> str:
    """Write a count with a space between thousands: `12 345`."""
    return f"{value:,.0f}".replace(",", " ")


def dollars(usd: float, digits: int = 2) -> str:
    """Write US dollars: `$1.23`; four digits where fractions of a cent matter."""
    return f"${usd:,.{digits}f}"


def seconds(value: float, digits: int = 1) -> str:
    """Write seconds: `12.3 s`."""
    return f"{value:.{digits}f} s"


def duration(value: float) -> str:
    """Write a time span in its natural unit: `42 s`, `12 min`, `3 h 05 min`, `4 days`."""
    minutes = round(value / 60)
    if value < 90:
        return f"{value:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes < 2880 else f"{minutes / 1440:.0f} days"


def size(number_of_bytes: float) -> str:
    """Write bytes in KB, MB or GB: `12.3 MB`."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if number_of_bytes >= scale:
            return f"{number_of_bytes / scale:.1f} {unit}"
    return f"{number_of_bytes / 1e3:.1f} KB"
