"""The settings in groups."""

from hyperirl.cli import parse
from hyperirl.cli.arguments import meanings
from hyperirl.cli.learn import Learn
from hyperirl.cli.settings import GROUPS
from hyperirl.options import NAMES, Options


def test_every_setting_is_in_one_group():
    grouped = [name for group in GROUPS for name in group.settings]
    assert sorted(grouped) == sorted(NAMES)
    assert GROUPS[0].basic and not any(group.basic for group in GROUPS[1:])


def test_every_setting_has_a_meaning():
    found = meanings(Options)
    assert tuple(found) == NAMES and all(found.values())
    assert found["discount"] == "The problem's gamma; 0.99 by default."


def test_only_what_is_said_is_in_the_options():
    assert parse(["learn"]) == Learn()
    words = "learn --steps 3 --policy-hidden 8 4 --no-normalize --damping 0.5"
    said = Options(steps=3, policy_hidden=(8, 4), normalize=False, damping=0.5)
    assert parse(words.split()) == Learn(options=said)
