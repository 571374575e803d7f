"""The report in a real browser, where there is one."""

import base64
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hyperirl.report import write_report
from hyperirl.runs import RunFolder

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def browse(page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess:
    """Opens a page, and gives what the browser printed and logged."""
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
        *options,
        page.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="There is no Chromium here."),
]


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
            size, shot = f"--window-size={width},4200", f"--screenshot={out}"
            done = browse(page, tmp_path / "profile", size, shot)
            assert "CONSOLE" not in done.stderr
            assert out.stat().st_size > 10_000


_TOUCH = """<script>
const svg = document.querySelector('svg[data-scale]');
const box = svg.getBoundingClientRect();
svg.dispatchEvent(new PointerEvent('pointermove', {clientX: box.right - 20}));
document.querySelector('button[data-s="1"]').click();
const result = document.createElement('output');
result.textContent = [
  svg.parentNode.querySelector('.tip').innerText.replaceAll('\\n', ' | '),
  document.querySelectorAll('g.s[data-s="1"]:not(.off)').length,
  document.documentElement.scrollWidth - window.innerWidth,
].join(' ; ');
document.body.append(result);
</script>"""


def test_the_page_answers_and_fits_a_phone(make_run, tmp_path):
    """Values under the mouse, a button that hides a run, no sideways scrolling."""
    runs = [make_run("a"), make_run("b", method="ml-irl")]
    values = [RunFolder.open(run).metrics()[-1]["nll_valid"] for run in runs]
    page = write_report(runs, tmp_path / "report.html")
    text = page.read_text().replace("</body>", f"{_TOUCH}</body>")
    page.write_text(text)
    size = "--window-size=390,800"
    blocked = browse(page, tmp_path / "profile", size, "--dump-dom")
    assert "The action has been blocked" in blocked.stderr  # It is not the page's own.
    assert "<output>" not in blocked.stdout
    digest = hashlib.sha256(_TOUCH[8:-9].encode()).digest()
    ours = f"script-src 'sha256-{base64.b64encode(digest).decode()}' "
    page.write_text(text.replace("script-src ", ours, 1))
    done = browse(page, tmp_path / "profile", size, "--dump-dom")
    assert "CONSOLE" not in done.stderr
    found = re.search("<output>(.*)</output>", done.stdout).group(1)
    tip, shown, overflow = found.split(" ; ")
    step, *lines = tip.split(" | ")
    assert step == "step 60"
    # Read back from coordinates with one decimal, on an axis of about 150.
    for line, name, value in zip(lines, "ab", values, strict=True):
        assert line.startswith(f"{name}: ")
        assert abs(float(line[3:]) - value) < 0.1
    assert (shown, overflow) == ("0", "0")
