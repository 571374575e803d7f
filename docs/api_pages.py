"""Writes the API reference: a page for each public module, from its docstrings.

Docstrings are Markdown, and so are the pages. A public name in backticks becomes a link
to its place.
"""

import ast
import dataclasses
import functools
import importlib
import inspect
import re
import textwrap
import typing
from pathlib import Path
from types import ModuleType

MODULES = (
    "hyperirl",
    "hyperirl.tasks",
    "hyperirl.environments",
    "hyperirl.worlds",
    "hyperirl.demos",
    "hyperirl.rewards",
    "hyperirl.policies",
    "hyperirl.inner",
    "hyperirl.hypergradient",
    "hyperirl.curvature",
    "hyperirl.evaluation",
    "hyperirl.exact",
    "hyperirl.exact.tabular",
    "hyperirl.exact.lqr",
    "hyperirl.wrappers",
    "hyperirl.saving",
    "hyperirl.runs",
    "hyperirl.report",
    "hyperirl.verdict",
    "hyperirl.films",
    "hyperirl.metrics",
    "hyperirl.rollout",
    "hyperirl.trajectories",
    "hyperirl.spaces",
    "hyperirl.problem",
)
_SECTION = re.compile(r"^(Args|Returns|Raises|Yields):$", re.MULTILINE)
_TITLES = {"Args": "Arguments"}


def write(folder: Path) -> None:
    """Writes a page for each module, and one that lists them."""
    folder.mkdir(exist_ok=True)
    pages = {name: page(name) for name in MODULES}
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text)
    (folder / "index.md").write_text(_contents())


@functools.cache
def public(module_name: str) -> dict[str, typing.Any]:
    """The public objects of a module that have no other home, by name."""
    module = importlib.import_module(module_name)
    names = getattr(module, "__all__", None) or _exported(module)
    found = {name: _get(module, name) for name in names}
    documented = lambda thing: inspect.isclass(thing) or inspect.isfunction(thing)
    found = {name: thing for name, thing in found.items() if documented(thing)}
    if module_name != "hyperirl":
        return found
    elsewhere = [m for m in MODULES if m != "hyperirl"]
    homes = {id(thing) for m in elsewhere for thing in public(m).values()}
    return {name: thing for name, thing in found.items() if id(thing) not in homes}


def _get(module: ModuleType, name: str) -> typing.Any:
    """`None` for what needs a library that is not installed."""
    try:
        return getattr(module, name)
    except ImportError:
        return None


def _exported(module: ModuleType) -> list[str]:
    """Names that a package passes on as they are, and those a module defines."""
    tree = ast.parse(inspect.getsource(module))
    names = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names += [alias.name for alias in node.names if alias.asname == alias.name]
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            names += [node.name]
    return [name for name in names if not name.startswith("_")]


def page(module_name: str) -> str:
    """Everything public in a module."""
    module = importlib.import_module(module_name)
    links = _links()
    lines = [f"# {module_name}", "", _prose(module, links), ""]
    lines += [f"```{{py:module}} {module_name}", "```", ""]
    for name, thing in sorted(public(module_name).items(), key=_classes_first):
        described = _class if inspect.isclass(thing) else _function
        lines += [described(name, thing, links), ""]
    return "\n".join(lines)


def _classes_first(item: tuple[str, typing.Any]) -> tuple[bool, str]:
    return not inspect.isclass(item[1]), item[0].lower()


def _contents() -> str:
    lines = ["# API", "", "Every public object, module by module.", ""]
    lines += ["| module | what is in it |", "|---|---|"]
    for name in MODULES:
        first = (inspect.getdoc(importlib.import_module(name)) or "").split("\n\n")[0]
        lines += [f"| [{name}]({name}.md) | {' '.join(first.split())} |"]
    lines += ["", "```{toctree}", ":hidden:", "", *MODULES, "```", ""]
    return "\n".join(lines)


@functools.cache
def _links() -> dict[str, str]:
    """Where each public name is; names that two modules share lead nowhere."""
    found: dict[str, list[str]] = {}
    for module in MODULES:
        for name in public(module):
            found.setdefault(name, []).append(f"{module}.{name}")
    return {name: places[0] for name, places in found.items() if len(places) == 1}


def _class(name: str, kind: type, links: dict[str, str]) -> str:
    own = _own_fields(kind)
    bases = [base.__name__ for base in kind.__bases__]
    bases = [_linked(f"`{base}`", links) for base in bases if base in links]
    parts = [f"Derived from {', '.join(bases)}."] if bases else []
    parts += [_prose(kind, links)]
    for field, (annotation, default, words) in own.items():
        options = [f":type: {annotation}"] if annotation else []
        options += [f":value: {default}"] if default else []
        body = ["", _linked(words, links)] if words else []
        parts += ["\n".join([f":::{{py:attribute}} {field}", *options, *body, ":::"])]
    for method, function in vars(kind).items():
        text = None if method in own else _method(method, function, links)
        parts += [text] if text else []
    shown = "" if own or not _is_plain_class(kind) else _arguments(kind)
    return "\n\n".join([f"::::{{py:class}} {name}{shown}", *parts, "::::"])


def _is_plain_class(kind: type) -> bool:
    return not issubclass(kind, Exception) and "__init__" in vars(kind)


def _method(name: str, function: typing.Any, links: dict[str, str]) -> str | None:
    """A public method; nothing for an override that adds no words."""
    role, options = "py:method", []
    if isinstance(function, property):
        role, function = "py:property", function.fget
    elif isinstance(function, classmethod | staticmethod):
        options = [":classmethod:" if isinstance(function, classmethod) else ""]
        options = [option for option in options if option]
        function = function.__func__
    function = inspect.unwrap(function) if callable(function) else function
    hidden = name.startswith("_") and name != "__call__"
    if hidden or not inspect.isfunction(function) or not function.__doc__:
        return None
    if getattr(function, "__isabstractmethod__", False):
        options += [":abstractmethod:"]
    shown = "" if role == "py:property" else _arguments(function)
    head = [f":::{{{role}}} {name}{shown}", *options, ""]
    return "\n".join([*head, _prose(function, links), ":::"])


def _function(name: str, function: typing.Any, links: dict[str, str]) -> str:
    head = f"::::{{py:function}} {name}{_arguments(function)}"
    return "\n\n".join([head, _prose(function, links), "::::"])


def _arguments(function: typing.Any) -> str:
    """Names and plain defaults; types are in the words, where they matter."""
    shown = []
    parameters = list(inspect.signature(function).parameters.values())
    starred = False
    for parameter in parameters:
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown, starred = [*shown, "*"], True
        text = parameter.name
        if parameter.kind is parameter.VAR_POSITIONAL:
            text, starred = f"*{text}", True
        if parameter.kind is parameter.VAR_KEYWORD:
            text = f"**{text}"
        if parameter.default is not parameter.empty:
            plain = isinstance(parameter.default, str | int | float | tuple | None)
            text += f"={parameter.default!r}" if plain else "=..."
        shown += [text]
    return f"({', '.join(shown)})"


def _own_fields(kind: type) -> dict[str, tuple[str, str, str]]:
    """Annotation, default and words of each public field, as its class writes them."""
    if not dataclasses.is_dataclass(kind):
        return {}
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError):
        return {}
    body = typing.cast(ast.ClassDef, tree.body[0]).body
    lines = inspect.getsource(kind).splitlines()
    found = {}
    for place, node in enumerate(body):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        annotation = ast.unparse(node.annotation)
        name = node.target.id
        if name.startswith("_") or annotation.startswith("ClassVar"):
            continue
        words = ""
        after = body[place + 1] if place + 1 < len(body) else None
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            words = inspect.cleandoc(str(after.value.value))
        elif "  # " in (line := lines[node.lineno - 1]):
            words = line.split("  # ", 1)[1]
        found[name] = annotation, _default(node.value), words
    return found


def _default(value: ast.expr | None) -> str:
    """As it is written; of a field with settings, what it starts from."""
    if value is None:
        return ""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "eqx.field":
        named = {keyword.arg: keyword.value for keyword in value.keywords}
        return ast.unparse(named["default"]) if "default" in named else ""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "hyperparameter":
        return ast.unparse(value.args[0])
    return ast.unparse(value)


def _prose(thing: typing.Any, links: dict[str, str]) -> str:
    """The docstring, with its sections as lists and its names as links."""
    text = inspect.cleandoc(thing.__doc__ or "")
    head, *sections = _SECTION.split(text)
    parts = [_linked(head.strip(), links)]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        parts += [f"**{_TITLES.get(title, title)}**", _list(body, links)]
    return "\n\n".join(part for part in parts if part)


def _list(body: str, links: dict[str, str]) -> str:
    """`name: words` lines as a list; what is indented further goes on."""
    items: list[str] = []
    for line in textwrap.dedent(body.strip("\n")).splitlines():
        if line.startswith(" ") and items:
            items[-1] += f" {line.strip()}"
        elif line.strip():
            items += [line.strip()]
    named = re.compile(r"^(\*{0,2}\w+): ")
    bold = lambda item: named.sub(lambda m: f"`{m.group(1)}`: ", item)
    return "\n".join(f"- {_linked(bold(item), links)}" for item in items)


def _linked(text: str, links: dict[str, str]) -> str:
    """Public names in backticks lead to their places; fenced code stays as it is."""
    parts = re.split(r"(```.*?```)", text, flags=re.DOTALL)

    def link(match: re.Match) -> str:
        place = links.get(match.group(1))
        return f"{{py:obj}}`{match.group(1)} <{place}>`" if place else match.group(0)

    named = re.compile(r"(?<![`}])`(\w+)`(?!`)")
    plain = lambda part: named.sub(link, part)
    return "".join(p if p.startswith("```") else plain(p) for p in parts)
