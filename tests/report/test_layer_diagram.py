import runpy

import matplotlib

from tracerelay_jax.report.layer_diagram import CAPTIONS, draw_layer


def test_the_program_writes_the_picture_that_the_readme_shows(root, tmp_path, capsys):
    matplotlib.use("Agg")
    runpy.run_path(str(root / "launch/draw_layer.py"))["main"](["draw_layer.py", str(tmp_path / "new")])
    made = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert made == sorted(path.name for path in (root / "results/figures").iterdir()) == ["layer.png", "layer.svg"]
    assert str(tmp_path / "new" / "layer.svg") in capsys.readouterr().out
    texts = {text.get_text() for axes in draw_layer().axes for text in axes.texts}
    assert {caption for _, _, caption, _ in CAPTIONS} <= texts
