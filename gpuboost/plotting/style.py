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
"""The palette of Okabe and Ito (2008), *Color universal design*, with grey for black."""

PALETTE = (BLUE, ORANGE, GREEN, PINK, RED, SKY, YELLOW, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # one less than colours, so that pairs of the two repeat late
LINE_STYLES = ("-", "--", "-.", ":")
SMALL, TINY = 8.0, 6.5
"""Font sizes in points of what stands inside a picture."""
