"""Read a Dockerfile and its .dockerignore: as much of the language as ours uses. The rest is refused."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import PurePosixPath

KNOWN = ("ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "HEALTHCHECK", "LABEL", "RUN", "STOPSIGNAL", "USER", "WORKDIR")


@dataclass(frozen=True)
class Instruction:
    """An instruction.

    Attributes
    ----------
    line : int
        Where it begins in the file.
    name : str
        In capitals.
    flags : dict of str
        What stands before its text, such as ``{"from": "builder"}``.
    text : str
        The rest, its lines joined.
    """

    line: int
    name: str
    flags: dict[str, str]
    text: str

    def words(self) -> list[str]:
        """Return the words of the text: of a JSON list, or of a shell command."""
        return [str(word) for word in json.loads(self.text)] if self.is_list() else shlex.split(self.text)

    def is_list(self) -> bool:
        """Whether the text is a JSON list, so that no shell is involved."""
        return self.text.startswith("[")

    def pairs(self) -> dict[str, str]:
        """Return the ``NAME=value`` pairs of ENV, LABEL and ARG; an ARG without a value has ""."""
        return dict(word.partition("=")[::2] for word in self.words())


@dataclass
class Stage:
    """A stage: the image or stage that it starts from, its name or number, and what follows."""

    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)


def parse(text: str) -> list[Instruction]:
    """Return the instructions of a Dockerfile.

    Raises
    ------
    ValueError
        At what is not understood, with the number of the line.
    """
    found: list[Instruction] = []
    collected, begin = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        begin = begin or number
        collected += line.strip()
        if collected.endswith("\\"):
            collected = collected[:-1].rstrip() + " "
            continue
        found.append(instruction(collected, begin))
        collected, begin = "", 0
    if collected:
        raise ValueError(f"line {begin}: the last instruction does not end")
    return found


def instruction(text: str, line: int) -> Instruction:
    """Return an instruction from its text."""
    name, _, rest = text.partition(" ")
    name, rest = name.upper(), rest.strip()
    if name not in KNOWN:
        raise ValueError(f"line {line}: unknown instruction {name!r}")
    flags = {}
    while match := re.match(r"--([a-z-]+)=(\S+)\s+", rest):
        flags[match[1]] = match[2]
        rest = rest[match.end() :]
    if "<<" in rest:
        raise ValueError(f"line {line}: here-documents are not understood")
    return Instruction(line, name, flags, rest)


def stages(instructions: list[Instruction]) -> list[Stage]:
    """Return the stages of a Dockerfile, whose first instruction must be a FROM."""
    found: list[Stage] = []
    for item in instructions:
        if item.name == "FROM":
            base, *alias = item.words()
            found.append(Stage(base, alias[1] if alias else str(len(found))))
        elif not found:
            raise ValueError(f"line {item.line}: {item.name} before the first FROM")
        else:
            found[-1].instructions.append(item)
    return found


def substitute(text: str, variables: dict[str, str]) -> str:
    """Replace ``$NAME`` and ``${NAME}``; what is not set is empty."""
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda match: variables.get(match[1] or match[2], ""), text)


def ignored(path: str, patterns: list[str]) -> bool:
    """Whether a file of the context, or a folder that it is in, is left out; the last pattern that matches decides."""
    parts = PurePosixPath(path).parts
    prefixes = ["/".join(parts[: i + 1]) for i in range(len(parts))]
    result = False
    for pattern in patterns:
        pattern, keep = (pattern[1:], True) if pattern.startswith("!") else (pattern, False)
        tails = [pattern[3:]] if pattern.startswith("**/") else []
        names = [*prefixes, *(parts if tails else ())]
        if any(fnmatch(name, tail) for name in names for tail in [pattern, *tails]):
            result = not keep
    return result


def ignore_patterns(text: str) -> list[str]:
    """Return the patterns of a .dockerignore."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
