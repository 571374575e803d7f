"""Imports point one way, as in the picture of how data flows (DESIGN, section 3)."""

import ast
import pathlib

import pytest

import hyperirl

ROOT = pathlib.Path(hyperirl.__file__).parent

# Lowest first: a module may import those of earlier rows, and not of its own.
LAYERS = [
    {"_cache", "archive"},
    {"_jax", "describing", "metrics", "options", "problem", "runs", "spaces"},
    {"programs", "progress", "trajectories"},
    {"networks", "steps", "verdict"},
    {"curvature", "environments"},
    {"policies", "rewards"},
    {"cloning", "rollout", "saving"},
    {"exact", "export"},
    {"films", "lstd", "scores", "wrappers"},
    {"inner"},
    {"worlds"},
    {"tasks"},
    {"demos"},
    {"hypergradient"},
    {"evaluation"},
    {"learning"},
    {"report"},
    {"experiments"},
    {"cli"},
    {"__init__", "__main__"},
]
RANKS = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}

# Stricter than the order.
ONLY = {"curvature": {"archive"}, "report": {"metrics", "runs", "verdict"}}
NEVER = {"evaluation": {"hypergradient"}}


def _top(path: pathlib.Path) -> str:
    """The module or package directly below `hyperirl` that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def _imported(node: ast.AST, path: pathlib.Path) -> list[str]:
    """The dotted names below `hyperirl` that one statement imports."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        package = ("hyperirl", *path.relative_to(ROOT).parent.parts)
        base = package[: len(package) - node.level + 1] if node.level else ()
        module = ".".join([*base, *([node.module] if node.module else [])])
        names = [f"{module}.{alias.name}" for alias in node.names]
    else:
        names = []
    return [name.removeprefix("hyperirl.") for name in names if name[:9] == "hyperirl."]


def _edges(source: str, path: pathlib.Path) -> list[tuple[str, str]]:
    """Pairs of top-level modules: who imports whom."""
    here = _top(path)
    imported = [
        name for node in ast.walk(ast.parse(source)) for name in _imported(node, path)
    ]
    tops = [name.split(".")[0] for name in imported]
    return [(here, top) for top in tops if top != here]


def _allowed(importer: str, imported: str) -> bool:
    if importer in ONLY and imported not in ONLY[importer]:
        return False
    if imported in NEVER.get(importer, ()):
        return False
    return RANKS[imported] < RANKS[importer]


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_has_a_place(path):
    assert _top(path) in RANKS, (
        f"`{_top(path)}` is not in LAYERS: add it to the picture in the design and to "
        "the list in this test, above everything it imports."
    )


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_downwards(path):
    edges = [edge for edge in _edges(path.read_text(), path) if set(edge) <= set(RANKS)]
    wrong = [f"{a} -> {b}" for a, b in edges if not _allowed(a, b)]
    assert not wrong, f"{path.relative_to(ROOT)} imports upwards: {', '.join(wrong)}"


@pytest.mark.parametrize(
    "source, edge",
    [
        ("import hyperirl.learning", ("policies", "learning")),
        ("import hyperirl.learning.loop as l", ("policies", "learning")),
        ("from hyperirl import learning", ("policies", "learning")),
        ("from hyperirl.learning import loop", ("policies", "learning")),
        ("from ..learning import loop", ("policies", "learning")),
        ("from .. import learning", ("policies", "learning")),
        ("def f():\n    from hyperirl.learning import loop", ("policies", "learning")),
    ],
)
def test_every_way_of_importing_is_seen(source, edge):
    """Else the test above passes because it looks away."""
    assert _edges(source, ROOT / "policies" / "heads.py") == [edge]


def test_imports_within_a_package_and_of_others_are_free():
    source = "from .heads import x\nfrom hyperirl.policies import y\nimport jax"
    assert _edges(source, ROOT / "policies" / "policy.py") == []
