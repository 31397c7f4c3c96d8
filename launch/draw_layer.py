"""Draws the computation graph of one layer, README's first picture.

    python launch/draw_layer.py results/figures

writes layer.png and layer.svg into the folder, which it makes.
"""

import pathlib

from tracerelay_jax import cli
from tracerelay_jax.report.layer_diagram import write_layer


def main(argv):
    """Runs the program."""
    for path in write_layer(pathlib.Path(argv[1])):
        print(f"written to {path}")


if __name__ == "__main__":
    cli.run(main, operand="FOLDER")
