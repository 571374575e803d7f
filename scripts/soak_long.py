"""One long run: its memory, its files and the time to resume it must not grow."""

import gc
import resource
import tempfile
import time
from pathlib import Path

from hyperirl import demos
from hyperirl.learning import learn, resume

PARTS = 5  # The run is looked at, stopped and resumed so many times.


def run(steps: int) -> list[dict]:
    """Rows of figures, one for each part of the run, and what is wrong with them."""
    rows: list[dict] = []
    with tempfile.TemporaryDirectory(prefix="hyperirl-long-") as folder:
        home = Path(folder)
        demos.save(demos.collect("tabular", 40, seed=0), home / "demos.npz")
        out = home / "run"
        for part in range(1, PARTS + 1):
            rows.append(_part(steps, steps * part // PARTS, home, out))
            print(rows[-1], flush=True)
    first, last = rows[1], rows[-1]  # The first part compiles.
    # The last part also gives all rows back.
    last["wrong"] += int(rows[-2]["memory_mb"] > first["memory_mb"] + 5)
    last["wrong"] += int(last["peak_mb"] > 1.1 * first["peak_mb"] + 20)
    last["wrong"] += int(last["resume_seconds"] > 2 * first["resume_seconds"] + 2)
    return rows


def _part(steps: int, until: int, home: Path, out: Path) -> dict:
    began, first = time.monotonic(), []

    def on_step(row: dict) -> None:
        if not first:
            first.append(time.monotonic() - began)
        if row["step"] >= until and until < steps:
            raise KeyboardInterrupt  # As Ctrl-C does: it saves, and ends.

    try:
        if out.exists():
            resume(out, on_step=on_step)
        else:
            shown = str(home / "demos.npz")
            learn(
                "tabular",
                shown,
                inner="exact",
                steps=steps,
                agent_episodes=16,
                adaptive=False,
                out=out,
                on_step=on_step,
            )
    except KeyboardInterrupt:
        pass
    size = lambda name: (out / name).stat().st_size
    with open(out / "metrics.jsonl") as file:
        rows = sum(1 for _ in file)  # Read whole, the file would be in the peak.
    return {
        "steps": until,
        "seconds": round(time.monotonic() - began, 1),
        "resume_seconds": round(first[0], 2),
        "memory_mb": _held(),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "checkpoint_bytes": size("checkpoint.npz"),
        "metrics_bytes_a_step": round(size("metrics.jsonl") / max(rows, 1)),
        "files": len(list(out.iterdir())),
        "wrong": int(rows != until),
    }


def _held() -> float:
    """What this process holds now, in units of `peak_mb`."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * resource.getpagesize() / 2**20, 1)
