"""What a trained model's phases do: read them out, see who writes them, what they count, and turn them by hand.

Everything here is of NumPy arrays on the host, float64, angles in radians; `pictures` draws it.
"""

from tracerelay_jax.analysis.counting import best_dimensions, decode_counts, drift, fit_counts, lineage_counts, window_counts
from tracerelay_jax.analysis.interventions import rows_right, scale_alpha, silence, turn, without_inheritance
from tracerelay_jax.analysis.regression import Regression
from tracerelay_jax.analysis.trajectories import Observation, Trajectory, lineage_sums, observe, unroll
from tracerelay_jax.analysis.writes import PlacedWrites, Writes, writes_by_centre, writes_by_place

__all__ = [
    "Observation",
    "PlacedWrites",
    "Regression",
    "Trajectory",
    "Writes",
    "best_dimensions",
    "decode_counts",
    "drift",
    "fit_counts",
    "lineage_counts",
    "lineage_sums",
    "observe",
    "rows_right",
    "scale_alpha",
    "silence",
    "turn",
    "unroll",
    "window_counts",
    "without_inheritance",
    "writes_by_centre",
    "writes_by_place",
]
