"""The study's tables: candidates, verdicts, a table a round, and everything as one CSV."""

from collections.abc import Iterable, Mapping

from tracerelay_jax.report.comparison import PAPERS, Comparison, Summary
from tracerelay_jax.report.paper import Exposure, Paper, Setting
from tracerelay_jax.report.reconstruction.candidates import CANDIDATES
from tracerelay_jax.report.reconstruction.conclusion import describe, interval, mean_misfit
from tracerelay_jax.report.reconstruction.findings import Findings
from tracerelay_jax.report.reconstruction.rounds import ROUNDS, Measure, Round, cell_name
from tracerelay_jax.report.reconstruction.rule import target
from tracerelay_jax.report.tables.table import Column, Table


def candidate_table() -> Table:
    """What the candidates are."""
    rows = ((f"`{one.name}`", _changes(one.changes), one.why) for one in CANDIDATES)
    return Table(
        "candidates", "Candidates", (Column("Candidate"), Column("config.model"), Column("what it is")), tuple(rows)
    )


def _changes(changes: Mapping[str, object]) -> str:
    return ", ".join(f"{field}={value}" for field, value in changes.items()) or "as it is"


def verdict_table(findings: Findings) -> Table:
    """Every candidate's verdict in every round."""
    rows = [
        (f"`{name}`", *(_verdict(findings, name, i) for i in range(len(ROUNDS))), mean_misfit(findings.verdicts[name]))
        for name in findings.studies
    ]
    columns = (Column("Candidate"), *(Column(f"Round {round_.number}") for round_ in ROUNDS), Column("misfit"))
    return Table("verdicts", "Verdicts", columns, tuple(rows))


def _verdict(findings: Findings, name: str, index: int) -> str:
    verdict, earlier = findings.verdicts[name][index], findings.verdicts[name][:index]
    if verdict.out:
        return f"ruled out by {describe(verdict.out)}"
    if verdict.survives:
        return "survives"
    if any(before.out for before in earlier):
        return "ruled out before"
    planned = len(findings.paper.seeds)
    return "not enough runs: " + "; ".join(f"{cell_name(setting)} has {n} of {planned}" for setting, n in verdict.missing)


def round_table(findings: Findings, round_: Round) -> Table:
    """A round: a row for the paper and for each candidate in every cell."""
    measures = list(dict.fromkeys(measure for measures in round_.cells.values() for measure in measures))
    measures.sort(key=lambda measure: (not measure.rules, measure.length or 0))
    rows = []
    for setting, of_cell in round_.cells.items():
        shown = [measure if measure in of_cell else None for measure in measures]
        cell, paper = cell_name(setting), findings.paper
        rows.append((cell, "the paper", *(measure and _printed(paper, setting, measure) for measure in shown)))
        rows.append((cell, "allowed", *(measure and _allowed(paper, setting, measure) for measure in shown)))
        for name in findings.studies:
            rows.append((cell, f"`{name}`", *(measure and _ours(findings, name, setting, measure) for measure in shown)))
    title = f"Round {round_.number}. {'; '.join(map(cell_name, round_.cells))}"
    columns = (Column("Cell"), Column("Candidate"), *(Column(measure.name) for measure in measures))
    return Table(f"round{round_.number}", title, columns, tuple(rows), _NOTES)


_NOTES = (
    "Scores in percent, mean ± sample SD over seeds; updates of each seed from the earliest, † where it used up the cap. "
    "In brackets: ours less the paper's, in pooled SDs, or in the paper's for a single run. Bold: ruled out by it.",
)


def _printed(paper: Paper, setting: Setting, measure: Measure) -> str:
    aim = target(paper, setting, measure)
    if aim.updates:
        return _stops(paper.exposure[setting, seed] for seed in paper.seeds)
    return f"{aim.least:.2f} to {aim.greatest:.2f}" if aim.paper is None else _summary(aim.paper, paper)


def _allowed(paper: Paper, setting: Setting, measure: Measure) -> str | None:
    """None where nothing is ruled out, whatever the value."""
    return interval(target(paper, setting, measure)) if measure.rules else None


def _ours(findings: Findings, name: str, setting: Setting, measure: Measure) -> str | None:
    runs = findings.studies[name].of(setting)
    if not runs:
        return None
    cell = findings.comparison(name, setting, measure)
    text = _stops(run.exposure for run in runs) if measure.length is None else _summary(cell.ours, findings.paper)
    judged = findings.judged(name, setting, measure)
    out = judged is not None and judged.out
    return (f"**{text}**" if out else text) + _difference(cell)


def _difference(cell: Comparison) -> str:
    unit = ", paper's SD" if cell.unit == PAPERS else ""
    return "" if cell.difference is None else f" ({cell.difference:+.2f}{unit})"


def _stops(exposures: Iterable[Exposure]) -> str:
    stops = sorted((exposure.exhausted, exposure.final) for exposure in exposures)
    return ", ".join(f"{update:,}{'†' if capped else ''}" for capped, update in stops)


def _summary(summary: Summary, paper: Paper) -> str:
    spread = "" if summary.sd is None else f" ± {summary.sd:.2f}"
    return f"{summary.mean:.2f}{spread}" + ("" if summary.n == len(paper.seeds) else f", n = {summary.n}")


def long_table(findings: Findings) -> Table:
    """A row for each candidate in each column, for the CSV."""
    rows = [
        (round_.number, name, *_long_row(findings, name, setting, measure))
        for round_ in ROUNDS
        for setting, measures in round_.cells.items()
        for measure in measures
        for name in findings.studies
    ]
    headings = ("round", "candidate", "task", "d_c", "column", "seeds", "score", "allowed_least", "allowed_greatest",
                "judged_by", "misfit", "rules", "ruled_out")  # fmt: skip
    return Table("reconstruction", "All columns", tuple(map(Column, headings)), tuple(rows))


def _long_row(findings: Findings, name: str, setting: Setting, measure: Measure) -> tuple:
    runs = findings.studies[name].of(setting)
    judged = findings.judged(name, setting, measure)
    found = (judged.value, judged.misfit, measure.rules, judged.out) if judged else (None, None, measure.rules, None)
    return (
        setting.task, setting.dc, measure.name, " ".join(str(run.seed) for run in runs),
        findings.comparison(name, setting, measure),
        *target(findings.paper, setting, measure).allowed, *found,
    )  # fmt: skip
