"""Shortcuts for Most-Freq that need no counting over the whole source (Figure 4); each appends EOS."""

import numpy as np

from tracerelay_jax.tasks import MostFreq
from tracerelay_jax.tasks.most_freq import first_places, rank_by_count

SUFFIX = 32


def most_freq_baselines(task: MostFreq, sources: np.ndarray, ranking: np.ndarray) -> dict[str, float]:
    """The fraction of sources (B, T) whose ranking (B, V) each shortcut gets exactly.

    `suffix_32` ranks what the last 32 symbols hold, ties by first occurrence there; `first_appearance` lists symbols in
    the order in which they first appear; `fixed_order` always lists 0, 1, 2, ...
    """
    guesses = {
        f"suffix_{SUFFIX}": rank_by_count(sources[:, -SUFFIX:], task.symbols),
        "first_appearance": np.argsort(first_places(sources, task.symbols), axis=1, kind="stable"),
        "fixed_order": np.arange(task.symbols)[None, :],
    }
    return {name: float((guess == ranking).all(axis=1).mean()) for name, guess in guesses.items()}
