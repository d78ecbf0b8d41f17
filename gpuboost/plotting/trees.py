"""One tree as a picture: from the root on the left to the leaves on the right, with their votes as bars."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuboost.plotting.figure import Axes, axes_or_new
from gpuboost.plotting.labels import PLAIN, class_texts, column_names, text
from gpuboost.plotting.style import BLUE, RED, SMALL, TINY
from gpuboost.tree import Tree

ROW, LETTER = 0.42, 0.068
"""Inches from leaf to leaf, and of a letter of the conditions."""


@dataclass(frozen=True)
class Spot:
    """Where a node or a leaf is drawn.

    Attributes
    ----------
    node : int
        An inner node's number, or ``~leaf``.
    depth : int
    y : float
        Leaves are at 0, 1, 2, ..., an inner node is between its children.
    children : tuple of Spot
        Left and right; none for a leaf, or an inner node that is not drawn any further.
    """

    node: int
    depth: int
    y: float
    children: tuple[Spot, ...] = ()

    def all(self) -> Iterator[Spot]:
        """Yield this spot and all below it."""
        yield self
        for child in self.children:
            yield from child.all()


def check_trees(model: Any) -> None:
    """Refuse a model that is not fitted, or has no trees."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    if not hasattr(model, "ensemble_"):
        raise ValueError(f"this {type(model).__name__} boosts a regressor: it has no trees of its own that could be drawn")
    if not hasattr(model, "bin_mapper_"):
        raise ValueError(f"this {type(model).__name__} compares rows with training points: it has no trees that could be drawn")


def layout(tree: Tree, max_leaves: int) -> Spot:
    """Place the nodes. Beyond ``max_leaves`` only the nodes that were made first are cut, of which every parent is one."""
    n_cut = min(len(tree.feature), max_leaves - 1)
    rows = iter(range(tree.n_leaves))

    def place(node: int, depth: int) -> Spot:
        if node < 0 or node >= n_cut:
            return Spot(node, depth, float(next(rows)))
        children = (place(int(tree.left[node]), depth + 1), place(int(tree.right[node]), depth + 1))
        return Spot(node, depth, (children[0].y + children[1].y) / 2, children)

    return place(tree.first, 0)


def leaves_below(tree: Tree, node: int) -> int:
    """Return how many leaves are below a node."""
    return 1 if node < 0 else leaves_below(tree, int(tree.left[node])) + leaves_below(tree, int(tree.right[node]))


def number_of_leaves(n: int) -> str:
    """Return a number of leaves as text."""
    return f"{n} leaves" if n > 1 else "one leaf"


def threshold(value: float) -> str:
    """Return a cut, exactly if that is short."""
    exact = f"{value:.0f}" if value.is_integer() and abs(value) < 1e9 else repr(value)
    return exact if len(exact) <= 9 else f"{value:.6g}"


def conditions(model: Any, tree: Tree, node: int) -> tuple[str, str]:
    """Return which values go left and which go right."""
    feature, cut = int(tree.feature[node]), int(tree.cut[node])
    cuts = model.bin_mapper_.cuts(feature)
    if cut > len(cuts):
        return "present", "missing"
    value = threshold(float(cuts[cut - 1]))
    sides = [f"< {value}", f"≥ {value}"]
    if model.bin_mapper_.has_missing[feature]:
        sides[not tree.missing_left[node]] += " or missing"
    return sides[0], sides[1]


def draw_tree(model: Any, number: int, max_leaves: int, ax: Any) -> Axes:
    """Draw a tree, see `gpuboost.plotting.Plots.tree`."""
    from gpuboost.inputs.parameters import check_integer

    check_trees(model)
    check_integer("max_leaves", max_leaves, 2)
    ensemble = model.ensemble_
    if not ensemble.n_trees:
        raise ValueError("the model has no trees")
    check_integer("number", number, 0, ensemble.n_trees - 1)
    tree = ensemble.tree(number)
    root, names = layout(tree, max_leaves), column_names(model)
    spots = list(root.all())
    ends, inner = [s for s in spots if not s.children], [s for s in spots if s.children]
    texts = {s.node: (text(names[tree.feature[s.node]]), *conditions(model, tree, s.node)) for s in inner}
    pitch = 0.25 + LETTER * max((len(line) for lines in texts.values() for line in lines), default=0)
    n_columns = max(s.depth for s in spots)
    votes = Votes.of(tree, ends, class_texts(model.classes_))
    start = n_columns * pitch + 0.15
    width, height = start + votes.width + 0.3, ROW * len(ends) + 1.0
    axes = axes_or_new(ax, max(width, 4.5), height)
    for spot in inner:
        draw_cut(axes, spot, texts[spot.node], pitch, start)
    for spot in ends:
        if spot.node < 0:
            votes.draw(axes, tree.values[~spot.node], spot.y, start)
        else:
            hidden = f"+ {number_of_leaves(leaves_below(tree, spot.node))}"
            axes.text(start, spot.y, hidden, fontsize=SMALL, va="center", style="italic")
    votes.head(axes, start, len(ends))
    axes.set(xlim=(-0.1, max(start + votes.width + 0.2, 4.4)), ylim=(len(ends) + 0.35, -0.75 - votes.rise / ROW))
    axes.axis("off")
    found = int(np.searchsorted(ensemble.round_offset, number, "right"))
    left_out = tree.n_leaves - sum(s.node < 0 for s in ends)
    note = f"; {left_out} of its {tree.n_leaves} leaves are not drawn" if left_out else f", {number_of_leaves(tree.n_leaves)}"
    axes.set_title(f"Tree {number} (round {found}){note}")
    return axes


def draw_cut(axes: Axes, spot: Spot, texts: tuple[str, str, str], pitch: float, start: float) -> None:
    """Draw an inner node: its column, and the way to its children with the conditions."""
    x = spot.depth * pitch
    above, below = spot.children
    axes.plot([x, x], [above.y, below.y], color="0.45", linewidth=1.0, solid_capstyle="round")
    axes.plot([x], [spot.y], "o", color="0.25", markersize=3.5)
    axes.text(x + 0.08, spot.y, texts[0], fontsize=SMALL, weight="bold", va="center", **PLAIN)
    for child, condition, side in ((above, texts[1], "bottom"), (below, texts[2], "top")):
        stop = x + pitch if child.children else start - 0.1
        axes.plot([x, stop], [child.y, child.y], color="0.45", linewidth=1.0)
        shift = -0.06 if side == "bottom" else 0.06
        axes.text(x + 0.08, child.y + shift, condition, fontsize=SMALL - 0.5, va=side, color="0.2", **PLAIN)


@dataclass(frozen=True)
class Votes:
    """How the leaves' values are drawn: bars up for a class, down against it, on one scale.

    Attributes
    ----------
    classes : list of int
        The classes that the tree votes on.
    labels : list of str
    largest : float
        The value of a bar of full length.
    """

    classes: list[int]
    labels: list[str]
    largest: float

    @classmethod
    def of(cls, tree: Tree, ends: list[Spot], labels: list[str]) -> Votes:
        """Return the scale of a tree; classes that no leaf votes on are left out."""
        voted = np.flatnonzero((tree.values != 0).any(axis=0)).tolist() or list(range(tree.values.shape[1]))
        return cls(voted, [labels[k] for k in voted], float(abs(tree.values).max()) or 1.0)

    @property
    def pitch(self) -> float:
        """Inches from bar to bar."""
        return float(np.clip(3.2 / len(self.classes), 0.09, 0.28))

    @property
    def width(self) -> float:
        """Inches of all bars, and the name of the class that is voted for most."""
        return self.pitch * len(self.classes) + 0.3 + LETTER * max(map(len, self.labels))

    @property
    def upright(self) -> bool:
        """Whether labels are turned, to stand beside each other."""
        return max(map(len, self.labels)) * LETTER > self.pitch

    @property
    def rise(self) -> float:
        """Inches that the labels take above the bars."""
        return LETTER * max(map(len, self.labels)) if self.upright else 0.1

    def draw(self, axes: Axes, values: Any, y: float, start: float) -> None:
        """Draw the votes of a leaf, and the name of the class with the most."""
        x = start + self.pitch * (np.arange(len(self.classes)) + 0.5)
        lengths = values[self.classes] / self.largest * 0.45
        axes.plot([start, start + self.pitch * len(self.classes)], [y, y], color="0.6", linewidth=0.6)
        colors = [BLUE if length > 0 else RED for length in lengths]
        axes.bar(x, -lengths, bottom=y, width=self.pitch * 0.7, color=colors)
        if (values[self.classes] > 0).any():
            label = self.labels[int(values[self.classes].argmax())]
            axes.text(start + self.pitch * len(self.classes) + 0.1, y, label, fontsize=SMALL, va="center", **PLAIN)

    def head(self, axes: Axes, start: float, n_rows: int) -> None:
        """Write the classes above the bars, and below what a bar means."""
        step = max(1, int(np.ceil(0.1 / self.pitch)))
        for i in range(0, len(self.labels), step):
            x = start + self.pitch * (i + 0.5)
            rotation = 90 if self.upright else 0
            axes.text(x, -0.65, self.labels[i], fontsize=TINY + 0.5, ha="center", va="bottom", rotation=rotation, **PLAIN)
        middle = start + self.pitch * len(self.classes) / 2
        meaning = f"votes for (up) and against (down);\nthe longest is {self.largest:.3g}"
        axes.text(middle, n_rows - 0.3, meaning, fontsize=TINY + 0.5, ha="center", va="top", color="0.3")
