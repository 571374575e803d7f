"""What the page tells before and beside its numbers, of a real run."""

import base64
import http.client
import io
import re
import shutil
import threading

import numpy as np
import pytest
from PIL import Image

from hyperirl import evaluation
from hyperirl.cli import main
from hyperirl.learning import subject_of
from hyperirl.report import ReportServer, render
from hyperirl.report.maps import draw_maps
from hyperirl.runs import RunFolder
from hyperirl.verdict import judgement_of


@pytest.fixture(scope="module")
def pictured(learned, tmp_path_factory):
    """What a real run learned, with its picture; nothing was trained for it."""
    path = tmp_path_factory.mktemp("pictured") / "run"
    run = RunFolder.open(shutil.copytree(learned(), path))
    run.save_json("picture.json", evaluation.picture(subject_of(run)))
    return run


def test_the_page_explains_a_real_reward(pictured):
    page = render([pictured.path])
    for words in ("The reward along an expert", "Where the policy goes", "state 0"):
        assert words in page
    assert "could not be drawn" not in page
    assert 'src="data:' not in page and "hyperirl play" in page


def test_a_judgement_comes_before_all_numbers(pictured):
    page = render([pictured.path])
    lead = re.search('<main><p class="lead">(.*?)</p>', page).group(1)
    assert "held-out NLL is" in lead and "was not measured" in lead


EVALUATION = {
    "true_reward": True,
    "policy_nll": 110.0,
    "floor": 100.0,
    "gap_percent": {"mean": 10.0, "low": 8.0, "high": 12.0, "n": 40},
    "bc_nll": 103.0,
    "random_return": 0.0,
    "expert_return": 100.0,
    "hard_return": 97.0,
    "hard_true_return": 99.0,
    "settings": {"budget": 1000, "usual_budget": 1000, "seeds": 2, "test_episodes": 20},
}


def judged(**changes):
    return judgement_of([], EVALUATION | changes)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({}, "worse than the expert (10 % above the floor), and the reward retrains"),
        ({"gap_percent": {"mean": 1, "low": -1}}, "as far as one can tell"),
        ({"gap_percent": {"mean": 3, "low": 1}}, "almost as well as the expert"),
        ({"gap_percent": {"mean": 30, "low": 20}}, "far worse than the expert"),
        ({"true_reward_nll": 111.0}, "as well as one trained on the true reward"),
        ({"hard_return": 80.0}, "retrains in part (80 % of the way"),
        ({"random_return": -300.0, "hard_return": 20.0}, "(80 % of the way"),
        ({"hard_return": 20.0}, "; the reward does not retrain (20 %"),
        ({"hard_return": 60.0, "hard_true_return": 61.0}, "as far as on the true"),
        ({"true_reward": False}, "not known, for there is no true reward"),
        ({"floor": None, "gap_percent": None}, "a clone of the expert at 103; the"),
    ],
)
def test_the_sentence_says_how_close_and_whether_it_retrains(changes, words):
    assert words in judged(**changes).sentence


def test_what_is_weak_about_an_evaluation_is_distrusted():
    assert judged().distrust == ()
    small = {"budget": 50, "usual_budget": 1000, "seeds": 1, "test_episodes": 3}
    found = judged(settings=small, true_reward_nll=109.0)
    told = " ".join(found.distrust)
    for words in ("5 % of the 1,000", "single fresh", "3 held-out", "ends 9 % above"):
        assert words in told
    told = judged(rank_corr={"mean": 0.99}, rank_corr_constant=1.0).distrust
    assert told[0].startswith("RankCorr says nothing")
    assert judged(rank_corr={"mean": 0.99}, rank_corr_constant=0.98).distrust == told
    assert judged(rank_corr={"mean": 0.99}, rank_corr_untrained=0.3).distrust == ()


def test_without_a_floor_a_clone_stands_in(make_run):
    """As where the demonstrations hold no log-probabilities of the expert."""
    nothing = dict.fromkeys(("floor", "gap", "gap_percent"))
    page = render([make_run(evaluation=EVALUATION | nothing)])
    assert "so there is no floor. A clone" in page
    card = re.search("<h3>Above a clone</h3><p class=.value.>(.*?)</p>", page)
    assert card.group(1) == "7"
    assert "no floor" not in render([make_run("other", evaluation=EVALUATION)])


def test_a_single_step_is_a_dot(make_run):
    page = render([make_run(steps=1, evaluation=None)])
    charts = re.findall("<svg [^>]*data-scale.*?</svg>", page)
    assert charts and all('<circle class="dots c0"' in chart for chart in charts)


def maps_of(learned, true, **more):
    """Two maps of two by two cells."""
    values = [0.0, 1.0]
    panels = [
        {"title": f"{name}, push", "group": name, "values": table}
        for name, table in (("learned", learned), ("true", true))
    ]
    axes = {axis: {"name": axis, "values": values} for axis in "xy"}
    return draw_maps({"kind": "heatmaps", "panels": panels, **axes, **more})


def test_learned_and_true_share_one_scale_unless_one_would_vanish_on_it():
    shared = maps_of([[0, 1], [2, 3]], [[1, 2], [3, 5]])
    assert "One scale of colors" in shared and shared.count("2.5</text>") == 1
    apart = maps_of([[0, 1], [2, 3]], [[0, 100], [200, 300]])
    assert "learned reward" in apart and "true reward" in apart
    assert ">3</text>" in apart and ">300</text>" in apart


def test_high_values_of_the_second_input_are_at_the_top():
    page = maps_of([[0, 0], [1, 1]], [[0, 0], [1, 1]])
    first = re.search('image/png;base64,([^"]*)', page).group(1)
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(first))))
    assert pixels.tolist() == [[255, 255], [0, 0]]


def test_a_constant_reward_is_told_and_not_painted():
    page = maps_of([[0, 1], [2, 3]], [[7, 7], [7, 7]])
    assert "7 everywhere" in page and page.count("<image") == 2  # One is the bar.


def test_what_was_not_demonstrated_is_hatched_and_does_not_set_the_colors():
    seen = {"x": [0.1, 0.9], "y": [0, 0]}
    page = maps_of([[0, 1], [50, 3]], [[0, 0]] * 2, seen=seen, inside=["11", "00"])
    assert 'class="hatch"' in page and 'class="seen"' in page
    assert "≥ 1</text>" in page  # 50 is far from all that was seen.
    everywhere = maps_of([[0, 1], [2, 3]], [[0, 0]] * 2, inside=["11", "11"])
    assert 'class="hatch"' not in everywhere


@pytest.mark.parametrize(
    "content, shown",
    [
        (b"GIF89a" + b"x" * 100, True),
        (b"<svg onload=alert(1)>", False),
        (b"GIF89a" + b"x" * 2**22, False),
    ],
)
def test_a_film_is_shown_if_it_is_one_and_not_too_large(make_run, content, shown):
    run = make_run(steps=2)
    (run / "film.gif").write_bytes(content)
    page = render([run])
    assert ('src="data:image/gif;base64,R0lGODlh' in page) == shown
    assert ("takes in" in page) == (len(content) > 2**22)
    assert "alert(1)" not in page


@pytest.fixture
def server(make_run):
    with ReportServer(make_run(steps=2), port=0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, method="GET", path="/", host=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    host = f"127.0.0.1:{server.server_port}" if host is None else host
    connection.request(method, path, headers={"Host": host})
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), dict(answer.getheaders())
    connection.close()
    return found


def test_a_running_run_is_served_as_it_is_now(server):
    status, page, headers = ask(server)
    assert status == 200 and headers["Refresh"] == "5"
    assert server.server_address[0] == "127.0.0.1"
    run = RunFolder.open(server.folder)
    assert '<p class="value">2</p>' in page  # Outer steps.
    run.append_metrics(run.metrics()[-1] | {"step": 3})
    assert '<p class="value">3</p>' in ask(server)[1]
    (run.path / "config.json").unlink()
    status, page, headers = ask(server)
    assert status == 500 and "not the folder of a run" in page and headers["Refresh"]


@pytest.mark.parametrize(
    "request_, status",
    [
        ({"path": "/config.json"}, 404),
        ({"path": "/../config.json"}, 404),
        ({"path": "/?x"}, 404),
        ({"host": "evil.example"}, 421),
        ({"host": ""}, 421),
        ({"host": "127.0.0.1"}, 421),
        ({"method": "POST"}, 501),
        ({"method": "HEAD"}, 501),
    ],
)
def test_nothing_else_is_served_and_nobody_else(server, request_, status):
    found, page, _ = ask(server, **request_)
    assert found == status and "tabular" not in page


def test_what_cannot_be_watched_is_one_sentence(make_run, tmp_path, capsys, server):
    run, taken = str(make_run("second", steps=1)), str(server.server_port)
    for arguments, words in (
        ([str(tmp_path)], "not the folder of a run"),
        ([run, "--port", "70000"], "from 0 to 65535"),
        ([run, "--port", taken], "choose another one"),
        ([run, "--every", "0"], "once a second"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(["watch", *arguments])
        assert caught.value.code == 2 and words in capsys.readouterr().err


def test_interrupting_it_is_one_line(make_run, monkeypatch, capsys):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(ReportServer, "serve_forever", interrupted)
    main(["watch", str(make_run(steps=1)), "--port", "0"])
    first, *rest = capsys.readouterr().out.splitlines()
    assert "http://127.0.0.1:" in first and rest[-1].startswith("Stopped watching")
