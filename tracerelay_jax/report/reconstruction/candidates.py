"""The candidates for what the paper leaves open: initialisation, position information in the attentions, precision."""

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

from tracerelay_jax.errors import InputError


class Candidate(NamedTuple):
    """One way to fill in what the paper does not say.

    Attributes:
      name: the end of its runs' names.
      changes: fields of `TraceRelayConfig` that differ from the default candidate's.
      why: what speaks for it.
    """

    name: str
    changes: dict[str, Any]
    why: str


DEFAULT = "default"

# From the simplest: the fewer changes, the simpler.
CANDIDATES = (
    Candidate(DEFAULT, {}, "normal of σ = 0.02, rotary positions, float32: the runs of configs/paper.py"),
    Candidate("bfloat16", {"dtype": "bfloat16"}, "the precision that Table 2 prints, as autocast has it"),
    Candidate("bfloat16_products", {"product_dtype": "bfloat16"}, "the same in products only: the fastest on a CPU"),
    Candidate("alibi", {"position": "alibi"}, "a relative position that FlashAttention-2 takes as an argument"),
    Candidate("no_position", {"position": "none"}, "the paper names no position information"),
    Candidate("sigma_0.01", {"init_scale": 0.01}, "half of 0.02: phases that move less at first"),
    Candidate("sigma_0.04", {"init_scale": 0.04}, "midway between 0.02 and uniform's SD of 0.072 at H = 64, as ratios"),
    Candidate(
        "small_readout",
        {"readout_init_scale": 0.002},
        "P_φ a tenth of 0.02: a stream that begins as its symbols, and not as phases",
    ),
    Candidate(
        "uniform_adapters",
        {"adapter_init": "uniform"},
        "input projection and head ±1/√fan_in, layers of σ = 0.02: symbols that begin about as large as phases",
    ),
    Candidate("uniform", {"init": "uniform"}, "±1/√fan_in, what PyTorch's linear maps do unless told otherwise"),
    Candidate(
        "uniform_small_increments",
        {"init": "uniform", "increment_init_scale": 0.02},
        "the same, with P_δ normal of σ = 0.02: phases that hardly move at first",
    ),
)
BY_NAME = {candidate.name: candidate for candidate in CANDIDATES}


def with_candidate(config: Mapping[str, Any], candidate: Candidate) -> dict[str, Any]:
    """The paper's run as the candidate has it; the default's is the paper's run itself, name and all.

    Raises:
      InputError: if the candidate changes a field that the config's model does not have.
    """
    config = copy.deepcopy(dict(config))
    for field, value in candidate.changes.items():
        if field not in config["model"]:
            raise InputError(f"candidate {candidate.name}: config.model.{field} is unknown")
        config["model"][field] = value
    if candidate.name != DEFAULT:
        config["name"] += f"-{candidate.name}"
    return config
