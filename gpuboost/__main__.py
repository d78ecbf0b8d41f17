"""``gpuboost`` and ``python -m gpuboost``: the command line, and what is left of it where packages are missing."""

from __future__ import annotations

import sys


def main() -> None:
    """Run a command."""
    try:
        from gpuboost.cli import main as command_line
    except ModuleNotFoundError as error:
        package = (error.name or "gpuboost").partition(".")[0]
        if package == "gpuboost":
            raise
        sys.exit(run_without(package, sys.argv[1:]))
    command_line()


def run_without(package: str, words: list[str]) -> int | str:
    """Run the doctor, who needs no package, or say what is missing. Return the exit status, or the text of an error."""
    if words[:1] == ["doctor"]:
        from gpuboost.doctor import main as examine_and_print

        return examine_and_print(as_json="--json" in words)
    return (
        f"Error: the command line needs the package {package}, which is not installed. Install gpuboost-ml again, or run: "
        f"pip install {package}. gpuboost doctor lists all that is missing."
    )


if __name__ == "__main__":
    main()
