"""Writes the paper's tables and figures, ours beside the paper's, from the folders of finished runs alone.

    python launch/report.py results/

reads results/runs/*/ and writes results/report/: README.md with everything, each table as CSV, each figure as PNG and SVG.
Runs that are missing leave their cells empty.
"""

from tracerelay_jax import cli
from tracerelay_jax.report.page import write_report


def main(argv):
    """Runs the program."""
    for line in write_report(argv[1]):
        print(line)


if __name__ == "__main__":
    cli.run(main, operand="RESULTS")
