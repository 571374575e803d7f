"""Draws one-line bugs that nobody chose, for `mutate.py`: no test was looked at.

    python scripts/fresh_mutations.py --count 40 --seed 0 --out fresh.toml
    python scripts/mutate.py --list fresh.toml --json fresh.json

Folders take turns; within one, the file and the place in it are drawn. A bug is a
comparison that is turned round, a minus that is dropped, a factor or a summand that is
dropped, two arguments that are swapped, a whole number that is one more, or a switch
that is off. Error messages, annotations and docstrings are left alone.
"""

import argparse
import ast
import dataclasses
import json
import random
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "hyperirl"
TESTS = Path(__file__).with_name("tests_of.toml")
_TURNED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclasses.dataclass(frozen=True)
class Place:
    """A node of a file, and what takes its place."""

    node: ast.expr
    what: str
    new: str


def places(tree: ast.AST) -> Iterator[Place]:
    """All bugs that a file could have."""
    for node in _code(tree):
        for change in CHANGES:
            if (found := change(node)) is not None:
                yield Place(node, change.__name__.strip("_").replace("_", " "), found)


def _code(tree: ast.AST) -> Iterator[ast.expr]:
    """Expressions that do something: no messages, annotations or names of imports."""
    if isinstance(tree, ast.Raise | ast.Assert | ast.JoinedStr | ast.AnnAssign):
        inside = [tree.value] if isinstance(tree, ast.AnnAssign) else []
    elif isinstance(tree, ast.FunctionDef):
        inside = [*tree.args.defaults, *tree.args.kw_defaults, *tree.body]
    elif isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.unparse(tree.test):
        inside = []
    else:
        inside = list(ast.iter_child_nodes(tree))
    if isinstance(tree, ast.expr):
        yield tree
    for node in inside:
        if node is not None:
            yield from _code(node)


def _comparison_turned(node: ast.expr) -> str | None:
    if not isinstance(node, ast.Compare) or len(node.ops) > 1:
        return None
    turned = ast.Compare(node.left, [_TURNED[type(node.ops[0])]()], node.comparators)
    return ast.unparse(turned)


def _minus_dropped(node: ast.expr) -> str | None:
    if not isinstance(node, ast.UnaryOp) or not isinstance(node.op, ast.USub):
        return None
    # A negative number as an axis or an index is a choice, not a sign.
    return None if isinstance(node.operand, ast.Constant) else ast.unparse(node.operand)


def _not_dropped(node: ast.expr) -> str | None:
    drops = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return ast.unparse(node.operand) if drops else None


def _second_operand_dropped(node: ast.expr) -> str | None:
    if not isinstance(node, ast.BinOp):
        return None
    dropped = isinstance(node.op, ast.Mult | ast.Div | ast.Add | ast.Sub)
    return ast.unparse(node.left) if dropped else None


def _arguments_swapped(node: ast.expr) -> str | None:
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return None
    first, second, *rest = node.args
    if isinstance(first, ast.Starred) or isinstance(second, ast.Starred):
        return None
    return ast.unparse(ast.Call(node.func, [second, first, *rest], node.keywords))


def _one_more(node: ast.expr) -> str | None:
    whole = isinstance(node, ast.Constant) and type(node.value) is int
    return str(node.value + 1) if whole else None


def _switched(node: ast.expr) -> str | None:
    switch = isinstance(node, ast.Constant) and type(node.value) is bool
    return str(not node.value) if switch else None


CHANGES: tuple[Callable[[ast.expr], str | None], ...] = (
    _comparison_turned,
    _minus_dropped,
    _not_dropped,
    _second_operand_dropped,
    _arguments_swapped,
    _one_more,
    _switched,
)


def bug(path: Path, place: Place) -> dict[str, str] | None:
    """As an entry of a list; `None` if the lines are there twice."""
    text = path.read_text()
    lines, node = text.splitlines(keepends=True), place.node
    assert node.end_lineno is not None and node.end_col_offset is not None
    first, last = node.lineno - 1, node.end_lineno - 1
    # Columns are of bytes.
    head = lines[first].encode()[: node.col_offset].decode()
    tail = lines[last].encode()[node.end_col_offset :].decode()
    old = "".join(lines[first : last + 1])
    new = (
        f"{head}({place.new}){tail}"
        if node_needs(place)
        else f"{head}{place.new}{tail}"
    )
    if text.count(old) != 1:
        return None
    file = str(path.relative_to(PACKAGE))
    what = f"line {node.lineno}: {place.what}"
    return {"what": what, "file": file, "old": old, "new": new, "tests": tests_of(file)}


def node_needs(place: Place) -> bool:
    """Whether what takes the place is put in parentheses."""
    return not isinstance(place.node, ast.Constant | ast.Call)


def tests_of(file: str) -> str:
    """The tests that could notice: those of the longest name that fits."""
    listed = tomllib.loads(TESTS.read_text())["tests"]
    fitting = [name for name in listed if file.startswith(name)]
    return listed[max(fitting, key=len)] if fitting else ""


def draw(count: int, seed: int) -> list[dict[str, str]]:
    """Bugs, the folders in turn; files that no tests are listed for have none."""
    source = random.Random(seed)
    folders: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE)
        if file.name != "__init__.py" and tests_of(str(file)):
            name = file.parts[0] if len(file.parts) > 1 else "top"
            folders.setdefault(name, []).append(path)
    found: list[dict[str, str]] = []
    while len(found) < count:
        for paths in folders.values():
            path = source.choice(paths)
            tree = ast.parse(path.read_text())
            if candidates := list(places(tree)):
                drawn = bug(path, source.choice(candidates))
                if drawn is not None and drawn not in found:
                    found.append(drawn)
    return found[:count]


def main() -> None:
    """Writes the list."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    entries = (
        "\n".join(["[[bug]]", *(f"{n} = {json.dumps(v)}" for n, v in one.items())])
        for one in draw(args.count, args.seed)
    )
    args.out.write_text("\n\n".join(entries) + "\n")


if __name__ == "__main__":
    main()
