"""A kind of cell that does nothing, slowly, and keeps a journal of its starts."""

import os
import time
from pathlib import Path


def run(settings, folder: Path):
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "journal", "a") as journal:
        journal.write(f"{os.getpid()}\n")
    if settings.get("refuse"):
        raise ValueError("this cell cannot be done")
    if settings.get("always_die"):
        os._exit(9)
    began = time.monotonic()
    if len((folder / "journal").read_text().split()) == 1:  # Who was killed hurries.
        time.sleep(settings.get("seconds", 0))
    when = [began, time.monotonic()]
    return {"value": 10 * settings["seed"], "nan": float("nan"), "when": when}
