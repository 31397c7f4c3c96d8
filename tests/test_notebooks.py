"""The notebooks run, find what their text says, and ship with their pictures."""

import json
import re

import matplotlib
import numpy as np
import pytest

NAME = "phase_trajectories"


@pytest.fixture
def notebook(root):
    return json.loads((root / "notebooks" / f"{NAME}.ipynb").read_text())


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.usefixtures("optimized")
def test_the_cells_run_in_order_and_find_what_the_text_says(root, notebook, monkeypatch):
    monkeypatch.chdir(root / "notebooks")
    matplotlib.use("Agg")
    scope = {}
    with matplotlib.rc_context():
        for cell in code_cells(notebook):
            exec(compile("".join(cell["source"]), NAME, "exec"), scope)
        scope["plt"].close("all")
    # Layer 1 counts by rates that cancel, and better than the layers above.
    layers = [np.median(fit.explained) for fit in scope["fits"].values()]
    assert layers[0] > 0.99 > max(layers[1:])
    assert scope["spread"] < 0.05
    assert np.linalg.norm(scope["rate"].sum(axis=0)) < 0.05 * scope["size"].min()
    assert scope["by_hand"].mean() > 0.9
    # Phantom occurrences count, a turn of the same size that stands for nothing does not.
    lead, told, control = scope["lead"], scope["told"], scope["control"]
    assert told[lead >= 4].mean() > 0.9 > 0.1 > max(told[lead <= -4].mean(), control[lead >= 4].mean())
    # Without inheritance, or unseen, nothing is left of it.
    scores = scope["scores"]
    assert scores["as trained"] > 0.9 > 0.1 > max(scores["inheritance off"], scores["layer 1 unseen"])
    # The rates of Equal Repeats cancel over its own mixture, and slower hands reach further.
    zero, one = scope["er_fit"].rate
    assert zero @ one / (zero @ zero) == pytest.approx(-2, abs=0.2)
    for name, slower in (("Most-Freq", 2), ("Equal Repeats", 4)):
        longest = {divisor: outcomes[-1][0].mean() for divisor, outcomes in scope["results"][name].items()}
        assert longest[slower] > longest[1] + 0.1, name


def test_it_ships_as_it_was_run_with_its_pictures(root, notebook):
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} == {"stream", "display_data"}
    assert {output["name"] for output in outputs if output["output_type"] == "stream"} == {"stdout"}
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    drawn = sum("plt.subplots(" in "".join(cell["source"]) for cell in cells)
    assert len(pictures) == drawn > 4
    text = "".join("".join(output.get("text", [])) for output in outputs)
    assert not re.search(r"/(home|root|tmp|usr|var|opt|Users)/| at 0x", text)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert (root / "notebooks" / f"{NAME}.ipynb").stat().st_size < 1_500_000
