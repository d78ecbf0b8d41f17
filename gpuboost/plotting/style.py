"""Colours and markers: safe for colour-blind readers, and told apart in grey by line styles, markers, directions or text."""

from __future__ import annotations

BLUE, ORANGE, GREEN, PINK, RED, SKY, YELLOW, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#D55E00",
    "#56B4E9",
    "#F0E442",
    "#777777",
)
WINE, TEAL, OLIVE, INDIGO = "#882255", "#44AA99", "#999933", "#332288"
"""The palette of Okabe and Ito (2008), *Color universal design*, with grey for black, then four of Tol's "muted" scheme."""

PALETTE = (BLUE, ORANGE, GREEN, PINK, RED, SKY, YELLOW, GREY, WINE, TEAL, OLIVE, INDIGO)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # 7 and 12 have no common factor: pairs repeat after 84 classes
LINE_STYLES = ("-", "--", "-.", ":")
SMALL, TINY = 8.0, 6.5
"""Font sizes in points of what stands inside a picture."""
