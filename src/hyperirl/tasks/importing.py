"""Tasks of the user's own, named as `module:name` on the command line."""

import importlib
import os
import sys
from typing import Any

from hyperirl.environments import AbstractWorld
from hyperirl.tasks.task import Task


def import_task(name: str) -> Any:
    """The task or environment that a module holds, or that a function in it makes.

    A function that makes one of Gymnasium's environments is handed on as it is: many
    are needed. The module may be in the folder the program was started in.
    """
    module_name, _, attribute = name.partition(":")
    found = _attribute(name, _module(name, module_name), attribute)
    if isinstance(found, Task | AbstractWorld) or not callable(found):
        return found
    made = found()
    return made if isinstance(made, Task | AbstractWorld) else found


def _module(name: str, module_name: str) -> Any:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module_name)
    except (ImportError, ValueError, TypeError) as error:
        raise ValueError(
            f"Cannot import {module_name!r} for the task {name!r} ({error}); start the "
            "command in the folder of that module, or install it."
        ) from error


def _attribute(name: str, module: Any, attribute: str) -> Any:
    if not attribute or not hasattr(module, attribute):
        raise ValueError(
            f"The module of {name!r} has no {attribute!r}; name the function in it "
            "that makes the environment, as in `my_module:make_env`."
        )
    return getattr(module, attribute)
