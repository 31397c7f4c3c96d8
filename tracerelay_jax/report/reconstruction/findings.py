"""All that the study's tables and figure are made from."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tracerelay_jax.report.comparison import Comparison, compare
from tracerelay_jax.report.paper import Paper, Setting
from tracerelay_jax.report.reconstruction.rounds import ROUNDS, Measure
from tracerelay_jax.report.reconstruction.rule import Judged, Verdict, judge, target
from tracerelay_jax.report.runs import Study


class Findings(NamedTuple):
    """The runs of all candidates, and what the rule says of them.

    Attributes:
      studies: the runs of each candidate, from the simplest.
      paper: its numbers.
      verdicts: on each candidate, by round.
    """

    studies: Mapping[str, Study]
    paper: Paper
    verdicts: Mapping[str, Sequence[Verdict]]

    def judged(self, name: str, setting: Setting, measure: Measure) -> Judged | None:
        """One column of a candidate; None if the cell lacks a seed."""
        every = (each for verdict in self.verdicts[name] for each in verdict.judged)
        return next((each for each in every if (each.setting, each.measure) == (setting, measure)), None)

    def values(self, name: str, setting: Setting, measure: Measure) -> list[float]:
        """One value for each seed that is there."""
        runs = self.studies[name].of(setting)
        if measure.length is None:
            return [run.exposure.final for run in runs]
        return [run.percent(measure.length, measure.metric) for run in runs]

    def comparison(self, name: str, setting: Setting, measure: Measure) -> Comparison:
        """Against the paper's mean and SD; of updates, a run that used up the cap counts as it is."""
        return compare(self.values(name, setting, measure), target(self.paper, setting, measure).paper)


def judge_all(studies: Mapping[str, Study], paper: Paper) -> Findings:
    """Judges every candidate in every round."""
    verdicts = {name: [judge(study, paper, round_) for round_ in ROUNDS] for name, study in studies.items()}
    return Findings(studies, paper, verdicts)
