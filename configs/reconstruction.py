"""The reconstruction study, for launch/sweep.py: candidates for what the paper leaves open, trained as its own runs.

    python launch/sweep.py --config=configs/reconstruction.py:round=1,dc=16 --workdir=results/reconstruction/runs
    python launch/sweep.py --config=configs/reconstruction.py:round=1,candidate=alibi --workdir=results/reconstruction/runs
    python launch/sweep.py --config=configs/reconstruction.py:round=2,candidate=alibi,task=dyck --workdir=...
    python launch/sweep.py --config=configs/reconstruction.py:candidate=default --workdir=results/runs
    python launch/reconstruction.py results/

Arguments, after the colon and separated by commas; each selects, and all are meant without it:

    round      1 or 2
    candidate  one of those below; without it, all but default
    task       most_freq, dyck or equal_repeats
    dc         trace width of the middle layer: 16 or 64

The paper does not say how parameters are initialised, what position information its local attentions have, and what part
of a network its BF16 means. Each candidate changes one or two fields of `config.model`, and nothing else of the protocol:

    default                   normal of sigma = 0.02, RoPE, float32
    bfloat16                  bfloat16 activations
    bfloat16_products         products of bfloat16 with float32 sums, float32 activations
    alibi                     ALiBi
    no_position               no position information
    sigma_0.01                normal of sigma = 0.01
    sigma_0.04                normal of sigma = 0.04
    small_readout             normal of sigma = 0.02, but P_phi of sigma = 0.002
    uniform_adapters          normal of sigma = 0.02, but the input projection and the head uniform within 1/sqrt(fan in)
    uniform                   uniform within 1/sqrt(fan in)
    uniform_small_increments  uniform within 1/sqrt(fan in), but P_delta normal of sigma = 0.02

The default's runs are runs of configs/paper.py, with their names, in results/runs, and are not run twice. The others are
named after theirs, such as most_freq-dc16-seed42-alibi. All have the paper's three seeds.

Round 1, for all candidates: Most-Freq of widths 16 and 64. Columns: the update at which a run stopped, the score at
T = 256 (ID), 512 and 1024, and Table 4.
Round 2, for those that survive it: Dyck of width 64 (updates, T = 1024, T = 4096), and Equal Repeats of width 16 (updates,
T = 256, T = 512); of each task, the width at which the paper's seeds spread least.

What rules a candidate out, in either round, once all three seeds of a cell (a task and a width) are there; a single column
of a single cell is enough. This was said when the only runs were the default's first seeds of Most-Freq and of Equal
Repeats at width 16. Four candidates joined later: bfloat16_products, when it had proved the fastest on a CPU; sigma_0.01,
when the first run of sigma_0.04 had scored 6 percent at T = 1024; small_readout, when the default's first run of Dyck, of
width 16, had lost brackets that close within a few tokens, which symbols alone would tell; and uniform_adapters, when that
of small_readout, of width 64, had lost them too at T = 4096, 45 percent right against the paper's 87:

    updates      the middle seed uses up the cap, or stops before half or after twice the updates of the paper's middle seed
    T = 256      the mean is further from the paper's than 3 SDs and than 1 point, up or down
    other T      the mean is further from the paper's than 3 SDs and than 5 points, up or down
    Table 4      nothing: it is of the same outputs as the score at T = 1024

The SD is the root mean square of the paper's SDs over its three widths: three seeds tell an SD to a factor of two only.
It does not hold the candidate's own, so that scatter excuses nothing, and what is allowed is known before any run. Where
the paper prints a range of means instead (Equal Repeats, T = 512), the mean must be within 5 points of it. If a
candidate's scores were normal with the paper's mean and that SD, a column would rule it out in at most about 1 of 100
studies.

So a candidate need not be run any further once width 16 has ruled it out; `round=1,dc=16` goes first. It survives a round
when all cells are there and nothing rules it out. Of the survivors of both rounds, that which is nearest to the paper comes
out; those nearly as near tie with it, and the simplest of these wins. launch/reconstruction.py computes all of this, with
the numbers in tracerelay_jax/report/reconstruction/rounds.py.
"""

import pathlib

from ml_collections import ConfigDict

from tracerelay_jax.protocol import config_from_file, select_arguments
from tracerelay_jax.report.reconstruction.candidates import BY_NAME, CANDIDATES, DEFAULT, with_candidate
from tracerelay_jax.report.reconstruction.rounds import ROUNDS

_HERE = pathlib.Path(__file__).parent
_SEEDS = (42, 43, 44)


def get_config(arg=None):
    """Returns a ConfigDict with the tuple `runs`."""
    cells = [(round_.number, setting) for round_ in ROUNDS for setting in round_.cells]
    chosen = select_arguments(
        arg,
        round=tuple(dict.fromkeys(str(number) for number, _ in cells)),
        candidate=tuple(BY_NAME),
        task=tuple(dict.fromkeys(setting.task for _, setting in cells)),
        dc=tuple(dict.fromkeys(str(setting.dc) for _, setting in cells)),
    )
    name = chosen.pop("candidate", None)
    candidates = [BY_NAME[name]] if name else [one for one in CANDIDATES if one.name != DEFAULT]
    settings = [
        setting
        for number, setting in cells
        if chosen.items() <= {"round": str(number), "task": setting.task, "dc": str(setting.dc)}.items()
    ]
    runs = (
        with_candidate(_paper_run(setting.task, setting.dc, seed), candidate)
        for setting in settings
        for candidate in candidates
        for seed in _SEEDS
    )
    return ConfigDict({"runs": tuple(runs)})


def _paper_run(task: str, dc: int, seed: int) -> dict:
    return config_from_file(_HERE / f"{task}.py", f"dc={dc},seed={seed}").to_dict()
