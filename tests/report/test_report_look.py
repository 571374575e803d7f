"""The report in a real browser, where there is one."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hyperirl.report import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def screenshot(page: Path, out: Path, profile: Path, width: int, height: int) -> str:
    """Takes a picture of a page; returns what the browser logged."""
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--enable-logging=stderr",
        "--v=0",
        "--hide-scrollbars",
        f"--user-data-dir={profile}",
        f"--window-size={width},{height}",
        f"--screenshot={out}",
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.stderr


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="There is no Chromium here.")
def test_a_browser_draws_the_page_without_complaint(make_run, pictures, tmp_path):
    """Set `HYPERIRL_SCREENSHOTS` to a folder to keep the pictures and look at them."""
    kept = Path(os.environ.get("HYPERIRL_SCREENSHOTS", tmp_path))
    one = make_run("cartpole-fisher", picture=pictures["heatmaps"])
    lqr = make_run(
        "lqr", env="lqr", evaluation=None, picture=pictures["matrices"], steps=300
    )
    seeds = [make_run(f"seed-{i}", seed=i + 1) for i in range(3)]
    ml_irl = [make_run(f"ml-irl-{i}", method="ml-irl", seed=i) for i in range(2)]
    pages = {"one": [one], "lqr": [lqr], "many": [*seeds, *ml_irl, lqr, one]}
    for name, folders in pages.items():
        page = write_report(folders, kept / f"{name}.html")
        for width in (1280, 390):
            out = kept / f"{name}-{width}.png"
            log = screenshot(page, out, tmp_path / "profile", width, 4200)
            assert "CONSOLE" not in log
            assert out.stat().st_size > 10_000
