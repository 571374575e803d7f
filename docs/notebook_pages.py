"""Writes the examples as notebooks: the same lines, a cell for each part."""

import ast
import json
import re
from pathlib import Path
from typing import Any


def write(examples: Path, folder: Path) -> None:
    """Writes a notebook for each script."""
    folder.mkdir(exist_ok=True)
    for script in examples.glob("*.py"):
        made = json.dumps(notebook(script), indent=1)
        (folder / f"{script.stem}.ipynb").write_text(made)


def notebook(script: Path) -> dict[str, Any]:
    """A notebook whose code cells are the parts of a script, in order."""
    text = script.read_text()
    words = ast.get_docstring(ast.parse(text)) or ""
    cells = [_cell("markdown", f"# {words}")]
    given = re.search(rf"python examples/{script.name} ([a-z][^\s`]*)", words)
    if "sys.argv" in text:
        argv = [script.name, *given.groups()] if given else [script.name]
        cells += [_cell("code", f"import sys\n\nsys.argv = {argv}")]
    cells += [_cell("code", part) for part in parts(text)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def parts(text: str) -> list[str]:
    """The code below the docstring: a part ends where a function or class does."""
    body = ast.parse(text).body
    lines, begin, found = text.splitlines(), body[0].end_lineno or 0, []
    for node, after in zip(body, [*body[1:], None], strict=True):
        end = node.end_lineno or 0
        last_of_many = after is None or isinstance(
            after, ast.FunctionDef | ast.ClassDef | ast.If
        )
        if node is not body[0] and last_of_many:
            found += ["\n".join(lines[begin:end]).strip("\n")]
            begin = end
    return found


def _cell(kind: str, source: str) -> dict[str, Any]:
    code = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source, **code}
