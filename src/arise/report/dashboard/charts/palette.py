"""Colour-blind safe colours: Okabe-Ito for categories, viridis for amounts."""

from arise.types import Capability

BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"
GREY = "#8a8f98"
SERIES = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY)
CAPABILITY = dict(zip(Capability, (BLUE, GREEN, PURPLE, RED, ORANGE), strict=True))
PATH = {"discovery": SKY, "adaptive": GREEN, "fallback": GREY, "uniform": BLUE, "vade": PURPLE}
OUTCOME = {"all-fail": RED, "mixed": SKY, "all-pass": GREEN, "incomplete": GREY}

_VIRIDIS = (
    (68, 1, 84),
    (72, 36, 117),
    (65, 68, 135),
    (53, 95, 141),
    (42, 120, 142),
    (33, 145, 140),
    (34, 168, 132),
    (68, 191, 112),
    (122, 209, 81),
    (189, 223, 38),
    (253, 231, 37),
)


def _amount(share: float) -> tuple[int, ...]:
    place = min(max(share, 0.0), 1.0) * (len(_VIRIDIS) - 1)
    low = min(int(place), len(_VIRIDIS) - 2)
    part = place - low
    return tuple(round(a + part * (b - a)) for a, b in zip(_VIRIDIS[low], _VIRIDIS[low + 1], strict=True))


def viridis(share: float) -> str:
    """Return the colour of a value between 0 and 1."""
    return "#{:02x}{:02x}{:02x}".format(*_amount(share))


def ink_on(share: float) -> str:
    """Return the class of dark or light text, whichever has more contrast on `viridis(share)`."""
    red, green, blue = (
        (c / 255 / 12.92 if c / 255 <= 0.03928 else ((c / 255 + 0.055) / 1.055) ** 2.4) for c in _amount(share)
    )
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "ink-dark" if luminance > 0.179 else "ink-light"
