"""Writes the reconstruction study: candidates for what the paper leaves open, against what it prints.

    python launch/reconstruction.py results/

reads the runs of configs/reconstruction.py, which says what the study is, from results/reconstruction/runs/, and those of
its default candidate, which are the paper's, from results/runs/; writes results/reconstruction/: README.md with tables and
verdicts, one CSV with every column, the figure as PNG and SVG. Runs that are missing leave their cells empty.
"""

import pathlib

from tracerelay_jax import cli
from tracerelay_jax.protocol import config_from_file
from tracerelay_jax.report.reconstruction.candidates import CANDIDATES
from tracerelay_jax.report.reconstruction.page import write_study
from tracerelay_jax.sweep.plan import configs_of

_CONFIG = pathlib.Path(__file__).parent.parent / "configs" / "reconstruction.py"


def main(argv):
    """Runs the program."""
    planned = {one.name: configs_of(config_from_file(_CONFIG, f"candidate={one.name}"), []) for one in CANDIDATES}
    for line in write_study(argv[1], planned):
        print(line)


if __name__ == "__main__":
    cli.run(main, operand="RESULTS")
