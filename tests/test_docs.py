"""The pages lead somewhere, and say what the code says."""

import ast
import importlib
import inspect
import pathlib
import re
import sys
import typing

import gymnasium
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hyperirl
from hyperirl import cli
from hyperirl.environments import CartPole
from hyperirl.inner import Reinforce
from hyperirl.options import NAMES
from hyperirl.policies import mlp_policy
from hyperirl.rewards import StandaloneReward, mlp_reward
from hyperirl.saving import save_policy, save_reward
from hyperirl.spaces import Discrete

ROOT = pathlib.Path(__file__).parent.parent
WRITTEN = [
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/tutorials").glob("*.md")),
]
PAGES = [*WRITTEN, *sorted(ROOT.glob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def of_docs(name):
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def reference():
    return of_docs("reference_pages")


@pytest.fixture(scope="module")
def api():
    return of_docs("api_pages")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_within_the_project_leads_to_a_file(page):
    targets = LINK.findall(page.read_text())
    near = [target for target in targets if "://" not in target]
    missing = [target for target in near if not (page.parent / target).exists()]
    # Pages that are made from the code have their own tests.
    assert not [target for target in missing if "reference/" not in target]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_is_shown_exists(page):
    shown = re.findall(r"\{(?:literalinclude|image)\} (\S+)", page.read_text())
    assert all((page.parent / path).exists() for path in shown)


@pytest.mark.parametrize("folder", ["docs", "docs/tutorials"])
def test_every_page_is_in_the_contents(folder):
    contents = (ROOT / folder / "index.md").read_text().split()
    names = {page.stem for page in (ROOT / folder).glob("*.md")} - {"index"}
    assert names <= set(contents)


def test_every_example_has_its_tutorial():
    pages = "".join(page.read_text() for page in WRITTEN)
    missing = [
        script.name
        for script in (ROOT / "examples").glob("*.py")
        if f"examples/{script.name}\n" not in pages
    ]
    assert not missing


@pytest.mark.parametrize(
    "script", sorted((ROOT / "examples").glob("*.py")), ids=lambda script: script.name
)
def test_every_example_is_a_notebook_too(script):
    notebook_pages = of_docs("notebook_pages")
    code = script.read_text().split('"""\n', 1)[1]
    kept = [
        line
        for part in notebook_pages.parts(script.read_text())
        for line in part.splitlines()
    ]
    assert [line for line in kept if line] == [
        line for line in code.splitlines() if line
    ]
    made = notebook_pages.notebook(script)
    for cell in made["cells"][1:]:
        ast.parse(cell["source"])
    pages = "".join(page.read_text() for page in WRITTEN)
    assert f"<notebooks/{script.stem}.ipynb>" in pages


def test_every_public_object_has_its_place_and_words(api):
    for module in api.MODULES:
        text = api.page(module)
        for name, thing in api.public(module).items():
            assert re.search(rf"^::::\{{py:\w+\}} {name}\b", text, re.MULTILINE), name
            assert thing.__doc__, f"{module}.{name} has no docstring"
            assert inspect.cleandoc(thing.__doc__).split("\n")[0].split("`")[0] in text


def test_every_public_module_is_in_the_reference(api):
    shown = {f"hyperirl.{name}" for name in hyperirl._MODULES}
    assert shown <= set(api.MODULES)


def test_every_setting_has_its_row(reference):
    rows = re.findall(r"^\| `(\w+)` \| \S", reference.settings(), re.MULTILINE)
    assert sorted(rows) == sorted(NAMES)


def test_every_number_of_a_run_has_its_row(reference):
    rows = re.findall(r"^\| `(\w+)` \|", reference.metrics(), re.MULTILINE)
    assert {"nll_valid", "floor_valid", "gap", "soft_bellman_cosine"} <= set(rows)


def test_every_command_has_its_help(reference):
    kinds = typing.get_args(cli.Command)
    named = {typing.get_args(kind)[1].name for kind in kinds}
    assert named - {"demos", "version"} == set(reference._COMMANDS)


BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
RUN = re.compile(r"^<!-- run -->\n```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_block_is_python(page):
    for block in BLOCK.findall(page.read_text()):
        ast.parse(block)


LEARNED = {"index", "README", "quickstart"}
TINY = {
    "steps": 1,
    "agent_episodes": 4,
    "inner_updates": 1,
    "adaptive": False,
    "natural": False,
    "progress": False,
}


def given(page, folder):
    """What the blocks of a page that are run take for granted."""
    first = folder / "runs/first"
    if page == "runs":
        hyperirl.learn("lqr", method="bc", steps=1, progress=False, out=first)
    else:
        first.mkdir(parents=True)
    reward = StandaloneReward(mlp_reward(4, Discrete(2), key=jr.key(0)), 0.1)
    save_reward(reward, first / "reward.npz")
    if page == "export":  # The files are the same wherever they are.
        save_reward(reward, folder / "reward.npz")
        policy = mlp_policy(4, Discrete(2), key=jr.key(0))
        save_policy(policy, folder / "policy.npz")
    rows = jr.normal(jr.key(0), (40, 6), jnp.float32)
    steps = [(np.zeros((4, 2), np.float32), np.zeros(3, np.int32)) for _ in range(2)]
    (one, left), (two, right) = steps
    names = {
        "curvature": {
            "rows": rows,
            "g": rows[0],
            "rows_of_another_machine": rows,
            "dim": 6,
            "block": rows,
            "another_block": rows,
        },
        "demos-formats": {
            "ANY": "cartpole",
            "demos": hyperirl.demos,
            "first_observations": one,
            "second_observations": two,
            "first_actions": left,
            "second_actions": right,
            "act": lambda observation: int(observation[2] > 0),
        },
        "environments": {"hi": hyperirl, "MyEnvironment": lambda mass=1.0: CartPole()},
        "jax": {"jax": jax, "jnp": jnp},
    }
    step = {"observation": np.zeros(4, np.float32), "action": np.int32(0)}
    step |= {"observations": np.zeros((3, 4), np.float32), "actions": np.zeros(3, int)}
    usual = {"reward": reward, "gymnasium": gymnasium, **step}
    return usual | names.get(page, {})


@pytest.fixture(scope="module")
def learned():
    """A run of one small step, which is what learning returns on the pages."""
    inner = Reinforce(num_episodes=4)
    return hyperirl.learn("cartpole", method="ml-irl", inner=inner, **TINY)


@pytest.mark.parametrize(
    "page",
    [page for page in [*WRITTEN, ROOT / "README.md"] if RUN.search(page.read_text())],
    ids=lambda page: page.stem,
)
@pytest.mark.filterwarnings("ignore:SCFD may be far")
def test_blocks_that_are_marked_run(page, tmp_path, monkeypatch, request):
    """Evaluating has its own tests, and takes long."""
    names = given(page.stem, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "src/hyperirl/export")
    if page.stem in LEARNED:
        result, found = request.getfixturevalue("learned"), {"env_return": {"mean": 1}}
        monkeypatch.setattr(hyperirl, "learn", lambda *_, **__: result)
        monkeypatch.setattr(hyperirl, "evaluate", lambda _: found, raising=False)
    for block in RUN.findall(page.read_text()):
        exec(compile(block, page.name, "exec"), names)
