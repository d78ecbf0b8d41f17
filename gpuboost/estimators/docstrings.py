"""Docstrings of classes that inherit parameters and attributes: each is documented once, and stands in every class's help."""

from __future__ import annotations

import inspect
import re

INHERITED = ("Parameters", "Attributes")
SECTIONS = (*INHERITED, "See Also", "Notes", "References", "Examples")
"""The sections of numpydoc in their order."""

HEADER = re.compile(rf"^({'|'.join(SECTIONS)})\n-+\n", re.MULTILINE)
ENTRY = re.compile(r"^(?=\S)", re.MULTILINE)


def with_inherited_entries(cls: type) -> str:
    """Return the docstring of a class with the entries of its bases behind its own.

    An entry of the class replaces that of the same name; parameters that ``__init__`` does not take, and what the class names
    in ``_absent``, are left out.
    """
    summary, sections = divided(vars(cls).get("__doc__"))
    taken = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    for title in INHERITED:
        merged = entries(sections.get(title, ""))
        for base in cls.__bases__:
            for name, entry in entries(divided(base.__doc__)[1].get(title, "")).items():
                if (title != "Parameters" or name in taken) and name not in getattr(cls, "_absent", ()):
                    merged.setdefault(name, entry)
        sections[title] = "\n".join(merged.values())
    present = [f"{title}\n{'-' * len(title)}\n{sections[title]}" for title in SECTIONS if sections.get(title)]
    return "\n\n".join([summary, *present]) + "\n"


def divided(doc: str | None) -> tuple[str, dict[str, str]]:
    """Return what stands above the sections of a docstring, and the sections by title."""
    summary, *parts = HEADER.split(inspect.cleandoc(doc or ""))
    return summary.strip(), dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))


def entries(section: str) -> dict[str, str]:
    """Return the entries of a section by name; each begins in the first column."""
    return {entry.partition(" :")[0].strip(): entry.rstrip() for entry in ENTRY.split(section) if entry}
