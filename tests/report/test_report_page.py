import base64
import hashlib
import html.parser
import json
import math
import re

import numpy as np
import pytest

from hyperirl.cli import main
from hyperirl.report import render, write_report
from hyperirl.runs import RunError, RunFolder

_VOID = {"meta", "br", "image", "path", "polyline", "polygon", "circle"}


class _Checker(html.parser.HTMLParser):
    """Collects tags and text, and checks that every tag is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.words = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)


def _parse(path):
    checker = _Checker()
    checker.feed(path.read_text())
    checker.close()
    assert checker.open == []
    return checker


def _charts(page):
    return {
        a["aria-label"]: a for t, a in page.tags if t == "svg" and "data-scale" in a
    }


def test_only_settings_that_all_runs_share_are_at_the_head(make_run):
    page = render([make_run("one"), make_run("two", discount=0.5)])
    header = page.partition("<header>")[2].partition("</header>")[0]
    assert "env tabular" in header and "discount" not in header


def test_a_report_shows_results_curves_picture_and_origin(make_run, pictures, tmp_path):
    run = make_run(picture=pictures["heatmaps"])
    out = write_report([run], tmp_path / "new" / "report.html")
    page = _parse(out)
    words = " ".join(page.words)
    for expected in (
        "1.23 %",  # The gap, from the evaluation.
        "Expert's floor 10.17",  # From the rows.
        "[492, 500]",
        "Return, trained the hard way",
        "[402, 455]",
        "this way on the true reward",
        "0.71 is unrelated, 1 is the opposite",
        "pole twice as long",
        "learned, push left",
        "learned return against true return",
        "hyperirl learn --seed 0 --out first",
        '"temperature": 0.1',
        "jaxlib",
    ):
        assert expected in words
    assert {"Held-out NLL", "Damping", "Learning rate"} <= set(_charts(page))
    assert "Skipped steps" not in _charts(page)  # There were none.
    assert len([tag for tag, _ in page.tags if tag == "image"]) == 5


def test_a_report_needs_nothing_else(make_run, pictures, tmp_path):
    out = write_report([make_run(picture=pictures["heatmaps"])], tmp_path / "r.html")
    page = _parse(out)
    assert "http:" not in out.read_text() and "https:" not in out.read_text()
    assert not {"link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        assert "src" not in attributes
        reference = attributes.get("href", "#")
        assert reference.startswith(("#", "data:image/png;base64,"))
    policies = [a["content"] for t, a in page.tags if a.get("http-equiv")]
    assert "default-src 'none'" in policies[0]


def test_many_long_runs_still_make_a_small_file(make_run, pictures, tmp_path):
    runs = [
        make_run(f"{width}-{twin}", steps=300, reward_hidden=width,
                 picture=pictures["heatmaps"])
        for twin in range(2)
        for width in range(4)
    ]  # fmt: skip
    out = write_report(runs, tmp_path / "report.html")
    assert out.stat().st_size < 300_000
    _parse(out)


def test_runs_that_differ_by_seed_become_a_mean_and_a_band(make_run, tmp_path):
    runs = [make_run(f"seed-{seed}", seed=seed) for seed in range(3)]
    page = _parse(write_report(runs, tmp_path / "report.html"))
    lines = [a for t, a in page.tags if t == "polyline"]
    bands = [a for t, a in page.tags if t == "polygon"]
    assert len(lines) == len(bands) == len(_charts(page))
    assert "tabular fisher (3 seeds)" in "".join(page.words)


def test_runs_that_differ_are_overlaid_and_their_differences_listed(make_run, tmp_path):
    runs = [make_run("a"), make_run("b", method="ml-irl", damping=0.1)]
    page = _parse(write_report(runs, tmp_path / "report.html"))
    buttons = [a for t, a in page.tags if t == "button"]
    lines = [a for t, a in page.tags if t == "polyline"]
    assert len(buttons) == 2
    # ML-IRL has no curvature, no trust region and nothing to be compared with.
    assert len(lines) == 2 * len(_charts(page)) - 7
    assert len({line["stroke-dasharray"] for line in lines}) == 2
    words = "".join(page.words)
    assert "setting that differs" in words and "ml-irl" in words


def test_curves_are_where_their_values_are(make_run, tmp_path):
    """Reads a chart back through its scale, as the page's script does."""
    run = make_run(steps=30)
    page = _parse(write_report([run], tmp_path / "report.html"))
    index = [t for t, _ in page.tags].index("polyline")
    chart = _charts(page)["Held-out NLL"]
    x_low, x_high, y_low, y_high = map(float, chart["data-scale"].split())
    points = [p.split(",") for p in page.tags[index][1]["points"].split()]
    x, y = np.array(points, float).T
    rows = RunFolder.open(run).metrics()
    steps = x_low + (x_high - x_low) * (x - 66) / (426 - 66)
    values = y_low + (y_high - y_low) * (218 - y) / (218 - 12)
    # Positions have one decimal.
    np.testing.assert_allclose(steps, [row["step"] for row in rows], atol=0.02)
    np.testing.assert_allclose(values, [row["nll_valid"] for row in rows], atol=0.05)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_run_that_just_began_can_be_reported(make_run, tmp_path, steps):
    run = make_run(steps=steps, evaluation=None)
    page = _parse(write_report([run], tmp_path / "report.html"))
    assert "hyperirl evaluate" in "".join(page.words)


def test_values_that_are_not_finite_or_not_numbers_are_left_out(make_run, tmp_path):
    run = RunFolder.open(make_run(steps=0, evaluation={"policy_nll": "unknown"}))
    for step in range(5):
        snr = math.nan if step == 2 else 0.0
        run.append_metrics({"step": step, "snr": snr, "damping": 1e200, "h_norm": None})
    charts = _charts(_parse(write_report([run.path], tmp_path / "report.html")))
    assert "Signal to noise" in charts
    assert not {"Damping", "Norm of the hypergradient"} & set(charts)


def _allowed(source, text):
    """What a policy must say for the browser to take this content."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"{source} 'sha256-{base64.b64encode(digest).decode()}';"


def test_the_page_may_run_its_own_script_and_load_nothing(make_run, pictures, tmp_path):
    run = make_run(picture=pictures["matrices"])
    out = write_report([run], tmp_path / "report.html")
    text, page = out.read_text(), _parse(out)
    (policy,) = [
        a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a
    ]
    (style,) = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    (script,) = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    assert _allowed("style-src", style) in policy
    assert _allowed("script-src", script) in policy
    names = {name for _, attributes in page.tags for name in attributes}
    assert not {n for n in names if n == "style" or n.startswith("on")}


def test_the_colors_of_a_matrix_are_in_the_style(make_run, pictures, tmp_path):
    run = make_run(picture=pictures["matrices"])
    text = write_report([run], tmp_path / "report.html").read_text()
    cells = re.findall('<td class="(t[0-9]+)">([^<]*)</td>', text)
    assert dict((number, tint) for tint, number in cells) | {"1": "t32"} == {
        "1.02": "t32",
        "0.05": "t17",
        "0.11": "t18",
        "1": "t32",
        "0": "t16",
        "−0.1": "t14",
    }
    assert all(f".{tint}{{background:#" in text for tint, _ in cells)
    assert ".t32{background:#f5a45c}" in text and ".t0{background:#78b0e2}" in text
    assert ".t16{background:#ffffff}" in text


def test_a_picture_that_is_odd_does_not_cost_the_report(make_run, tmp_path):
    odd = {"kind": "heatmaps", "panels": [{"title": "x", "values": [["a"]]}]}
    run = make_run(picture=odd | {"scatter": {"x": [], "y": []}})
    words = "".join(_parse(write_report([run], tmp_path / "report.html")).words)
    assert words.count("could not be drawn") == 2


@pytest.mark.parametrize("kind", [[[]], {"": {}}, None, 1.5])
def test_a_picture_of_no_kind_is_left_out(make_run, pictures, tmp_path, kind):
    run = make_run(picture=pictures["matrices"] | {"kind": kind})
    words = _parse(write_report([run], tmp_path / "report.html")).words
    assert "learned Q" not in words


def test_matrices_are_tables(make_run, pictures, tmp_path):
    run = make_run(picture=pictures["matrices"])
    words = _parse(write_report([run], tmp_path / "report.html")).words
    assert {"learned Q", "true Q", "1.02", "−0.1"} <= set(words)


def test_text_from_a_run_is_never_markup(make_run, tmp_path):
    hostile = "<script>alert(1)</script>"
    panel = {"title": hostile, "rows": [hostile], "columns": [hostile], "values": [[1]]}
    scatter = {"x_name": hostile, "y_name": hostile, "x": [1], "y": [2]}
    run = make_run(
        env=hostile,
        evaluation={"transfer": {hostile: {"env_return": 1.0}}},
        picture={
            "kind": "matrices",
            "panels": [panel],
            "scatter": scatter | {"groups": [hostile]},
        },
    )
    text = write_report([run], tmp_path / "report.html").read_text()
    assert len(re.findall("<script", text)) == 1
    assert "alert(1)" in text


def test_runs_of_the_same_name_are_told_apart(make_run, tmp_path):
    runs = [make_run("a/run"), make_run("b/run", method="ml-irl")]
    words = "".join(_parse(write_report(runs, tmp_path / "report.html")).words)
    assert "a/run" in words and "b/run" in words


def test_what_cannot_be_reported_is_refused(make_run, tmp_path):
    with pytest.raises(RunError, match="no run to report"):
        write_report([], tmp_path / "report.html")
    with pytest.raises(RunError, match="does not exist"):
        write_report([tmp_path / "absent"], tmp_path / "report.html")
    run = make_run()
    with pytest.raises(RunError, match="twice"):
        write_report([run, run], tmp_path / "report.html")


def test_the_command_writes_into_the_folder_of_a_single_run(make_run, capsys):
    run = make_run(steps=3)
    main(["report", str(run)])
    assert (run / "report.html").exists()
    assert str(run / "report.html") in capsys.readouterr().out


def test_the_command_refuses_what_is_not_a_run(tmp_path, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["report", str(tmp_path), "--out", str(tmp_path / "report.html")])
    assert exit.value.code == 2
    assert "not the folder of a run" in capsys.readouterr().err


def test_a_torn_line_and_an_unknown_key_do_no_harm(make_run, tmp_path):
    run = make_run(steps=3)
    with open(run / "metrics.jsonl", "a") as file:
        file.write(json.dumps({"step": 4, "unknown": 1}) + '\n{"st')
    _parse(write_report([run], tmp_path / "report.html"))
