"""The report and the study that the project keeps are those of the runs that it keeps."""

import runpy

import pytest

from tracerelay_jax.report.figures import style


@pytest.mark.parametrize(("program", "folder"), [("report.py", "report"), ("reconstruction.py", "reconstruction")])
def test_every_text_is_made_anew_to_the_byte(root, tmp_path, monkeypatch, program, folder):
    kept = root / "results"
    (tmp_path / "runs").symlink_to(kept / "runs")
    (tmp_path / "reconstruction").mkdir()
    (tmp_path / "reconstruction/runs").symlink_to(kept / "reconstruction/runs")
    monkeypatch.setattr(style, "DPI", 20)
    runpy.run_path(str(root / "launch" / program))["main"]([program, str(tmp_path)])
    made = {path.name: path for path in (tmp_path / folder).iterdir() if path.is_file()}
    assert made.keys() == {path.name for path in (kept / folder).iterdir() if path.is_file()}
    for name, path in made.items():
        if path.suffix in (".md", ".csv"):
            assert path.read_text() == (kept / folder / name).read_text(), (
                f"python launch/{program} results/ makes another {name}"
            )
