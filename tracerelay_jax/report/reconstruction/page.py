"""The study's page, its CSV and its figure."""

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from tracerelay_jax.report.page import figure_markdown, write_files
from tracerelay_jax.report.paper import read_paper
from tracerelay_jax.report.reconstruction import tables
from tracerelay_jax.report.reconstruction.conclusion import conclude
from tracerelay_jax.report.reconstruction.figure import figure
from tracerelay_jax.report.reconstruction.findings import Findings, judge_all
from tracerelay_jax.report.reconstruction.rounds import FACTOR, ID_FLOOR, OOD_FLOOR, ROUNDS, SPREAD, TIE
from tracerelay_jax.report.reconstruction.runs import read_candidates
from tracerelay_jax.report.tables.table import Table
from tracerelay_jax.report.writing import to_csv, to_markdown

_RULE = f"""\
Said when the only runs were the default's first seeds of Most-Freq and of Equal Repeats at width 16; four candidates \
joined later: `bfloat16_products`, `sigma_0.01` after the first run of `sigma_0.04`, `small_readout` after the default's \
first run of Dyck, and `uniform_adapters` after that of `small_readout`. What is \
allowed in each column, and every verdict, is computed from it.

- A cell, one task and width, is judged once the runs of all of the paper's seeds are there. A single column of a single \
cell rules a candidate out. It survives a round when all cells are judged and none rules it out.
- **Updates.** The middle seed must be stopped by the threshold, after at least 1/{FACTOR:g} of the updates of the paper's \
middle seed and at most {FACTOR:g} times as many. A run that uses up the cap counts as later than any other.
- **Scores.** The mean over seeds must be within {SPREAD:g} SDs of the paper's mean, or within {OOD_FLOOR:g} points if that \
is more; {ID_FLOOR:g} at T = 256, inside the training range. The SD is the root mean square of the paper's over its three \
widths, as three seeds tell an SD to a factor of two only; it does not hold the candidate's: scatter excuses nothing. If a \
candidate's scores were normal with the paper's mean and that SD, a column would rule it out in at most about 1 of 100 \
studies. Where the paper prints a range, the mean must be within {OOD_FLOOR:g} points of it.
- **Table 4** rules nobody out: it is of the same outputs as the score at T = 1024.
- **Misfit.** How far a value is from the paper's, as a share of the tolerance; of updates, on a logarithmic scale. A \
candidate's is the mean over its judged columns, of which those of Table 4 count as one together.
- **Outcome.** Of the candidates that survive every round, those within {TIE:g} of the least misfit tie, and the simplest, \
first in the list above, comes out. If none survives, the closest is that which survived the most rounds; of these, that \
which the least share of its columns rules out; of these, that of the least misfit.
"""


def write_study(results: str | os.PathLike, planned: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Reads the planned runs that are there, and writes `results`/reconstruction: README.md, the CSV and the figure.

    Args:
      results: the folder that holds runs/ and reconstruction/runs/.
      planned: by candidate, from the simplest, the configs of its runs.

    Returns:
      Lines that say what it was made from, what it says, and where it is.

    Raises:
      InputError: before anything is written; see `read_candidates`.
    """
    paper = read_paper()
    findings = judge_all(read_candidates(results, planned, paper), paper)
    picture = figure(findings)
    everything = tables.long_table(findings)
    total = sum(map(len, planned.values()))
    files = {"README.md": _page(findings, figure_markdown(picture), total), f"{everything.name}.csv": to_csv(everything)}
    folder = pathlib.Path(results) / "reconstruction"
    write_files(folder, files, [picture])
    return [*_summary(findings, total), f"written to {folder / 'README.md'}"]


def _page(findings: Findings, picture: str, total: int) -> str:
    opening = [
        "# The reconstruction study: what the paper leaves open",
        "",
        "Initialisation, position information in the local attentions, and precision: candidates, against what the paper "
        "prints. Nothing else of the protocol differs. Made by `python launch/reconstruction.py results/` from the folders "
        "of runs alone: [../runs](../runs) for the default candidate, [runs](runs) for the others. They are those of "
        "[configs/reconstruction.py](../../configs/reconstruction.py).",
        "",
        *(f"- {line}" for line in _summary(findings, total)),
        "",
    ]
    planned = len(findings.paper.seeds)
    parts = [
        "\n".join(opening),
        _part(tables.verdict_table(findings), planned),
        picture,
        _part(tables.candidate_table(), planned),
        f"### The rule\n\n{_RULE}",
        *(_part(tables.round_table(findings, round_), planned) for round_ in ROUNDS),
        "All columns with full precision: [reconstruction.csv](reconstruction.csv)\n",
    ]
    return "\n".join(parts)


def _part(table: Table, planned: int) -> str:
    return f"### {table.title}\n\n{to_markdown(table, planned)}"


def _summary(findings: Findings, total: int) -> list[str]:
    finished = sum(len(study.runs) for study in findings.studies.values())
    unfinished = [name for study in findings.studies.values() for name in study.unfinished]
    lines = [
        conclude(findings.verdicts),
        f"{finished} of {total} runs are finished.",
    ]
    return [*lines, f"Without a result yet: {', '.join(unfinished)}."] if unfinished else lines
