import json

import matplotlib
import pytest


@pytest.mark.parametrize("name", ["phases"])
def test_the_cells_run_in_order(root, name, monkeypatch):
    monkeypatch.chdir(root / "notebooks")
    matplotlib.use("Agg")
    cells = json.loads((root / "notebooks" / f"{name}.ipynb").read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(sources) > 2
    scope = {}
    for source in sources:
        exec(compile(source, name, "exec"), scope)
    assert len(scope["axes"][0].lines) == scope["stride"] == 8
