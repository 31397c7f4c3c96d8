"""The whole report: its page, its tables as CSV, its figures as PNG and SVG."""

import os
import pathlib
from collections.abc import Iterable, Mapping

import matplotlib

from tracerelay_jax.report import ceilings, names
from tracerelay_jax.report.figures import dyck, equal_repeats, histories, most_freq
from tracerelay_jax.report.figures.style import Picture
from tracerelay_jax.report.paper import Paper, read_paper
from tracerelay_jax.report.runs import Study, read_study
from tracerelay_jax.report.tables import checks, exposure, protocol, scores
from tracerelay_jax.report.tables.table import Table
from tracerelay_jax.report.writing import MISSING, to_csv, to_markdown

# In the order of the page, by section.
_SECTIONS = {
    "Scores": (scores.table1, scores.other_lengths, scores.every_length, scores.every_run),
    "Equal Repeats": (equal_repeats.figure2, checks.gains, checks.ceiling_table),
    "Dyck": (dyck.figure3, scores.table3, checks.slice_counts),
    "Most-Freq": (most_freq.figure4, scores.table4, checks.baselines),
    "Protocol and training": (protocol.table2, histories.figure5, exposure.table5, exposure.exposure_means),
}


def write_report(results: str | os.PathLike) -> list[str]:
    """Reads `results`/runs and writes `results`/report, every file anew.

    Returns:
      Lines that say what it was made from, and where it is.

    Raises:
      InputError: before anything is written; see `read_study`.
    """
    paper = read_paper()
    study = read_study(results, paper)
    sections = {heading: [make(study, paper) for make in makers] for heading, makers in _SECTIONS.items()}
    files = {"README.md": _page(study, paper, sections)}
    for part in (part for parts in sections.values() for part in parts):
        if isinstance(part, Table):
            files[f"{part.name}.csv"] = to_csv(part)
    folder = pathlib.Path(results) / "report"
    write_files(folder, files, [part for parts in sections.values() for part in parts if isinstance(part, Picture)])
    return [*_summary(study, paper), f"written to {folder / 'README.md'}"]


def write_files(folder: pathlib.Path, files: Mapping[str, str], pictures: Iterable[Picture]) -> None:
    """Writes texts by the names of their files, and each picture as PNG and SVG; makes the folder."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    for picture in pictures:
        _save(picture, folder)


def _save(picture: Picture, folder: pathlib.Path) -> None:
    """Saves PNG and SVG, the same bytes on every run: without dates, and with names that do not change."""
    picture.figure.savefig(folder / f"{picture.name}.png", metadata={"Software": None})
    picture.figure.set_layout_engine("none")  # panels stay where they are; laying out anew takes seconds
    with matplotlib.rc_context({"svg.hashsalt": picture.name}):
        picture.figure.savefig(folder / f"{picture.name}.svg", metadata={"Date": None, "Creator": None})


def _page(study: Study, paper: Paper, sections: dict[str, list[Table | Picture]]) -> str:
    parts = [_opening(study, paper)]
    for heading, entries in sections.items():
        parts.append(f"## {heading}\n")
        parts += [
            _table(entry, len(paper.seeds)) if isinstance(entry, Table) else figure_markdown(entry) for entry in entries
        ]
    return "\n".join(parts)


def _table(table: Table, planned: int) -> str:
    return f"### {table.title}\n\n{to_markdown(table, planned)}\n[{table.name}.csv]({table.name}.csv)\n"


def figure_markdown(picture: Picture) -> str:
    """A picture under its title, with its caption; the files are beside the page."""
    image = f"![{picture.title}]({picture.name}.png)"
    return f"### {picture.title}\n\n{image}\n\n{picture.caption} ([SVG]({picture.name}.svg))\n"


def _opening(study: Study, paper: Paper) -> str:
    complete = len(paper.seeds)
    lines = [
        "# The paper's tables and figures, ours beside its own",
        "",
        "Made by `python launch/report.py results/` from the folders of runs in [../runs](../runs) alone.",
        "",
        *(f"- {line[0].upper()}{line[1:]}." for line in _summary(study, paper)),
        f"- Cells are means ± sample SDs over training seeds. A cell of more or fewer than {complete} runs says its n; "
        f"{MISSING} stands where there is no run, or no number in the paper.",
        "- A difference is ours less the paper's, in pooled SDs: √(((n₁ - 1) s₁² + (n₂ - 1) s₂²) / (n₁ + n₂ - 2)). A single "
        "run has no SD; its difference is in the paper's own SDs, and says so.",
        "",
    ]
    return "\n".join(lines)


def _summary(study: Study, paper: Paper) -> list[str]:
    counts = [f"{sum(run.setting.task == task for run in study.runs)} of {name}" for task, name in names.TASKS.items()]
    lines = [f"{len(study.runs)} finished runs ({', '.join(counts)}); the paper has {paper.planned_runs}"]
    if study.unfinished:
        lines.append(f"without a result yet, and so missing here: {', '.join(study.unfinished)}")
    return [*lines, _ceiling_line(study, paper)]


def _ceiling_line(study: Study, paper: Paper) -> str:
    found = ceilings.breaches(study, paper)
    if found:
        listed = ", ".join(f"{breach.run.name} at {breach.length} ({breach.excess:.1f} standard errors)" for breach in found)
        return f"ABOVE THE CEILING of what their {ceilings.window(study, paper)} tokens allow: {listed}"
    if not any(not run.setting.inherit_phase for run in study.runs):
        return "no run without inheritance yet to hold against its ceiling"
    return "no run without inheritance is above its ceiling beyond sampling error"
