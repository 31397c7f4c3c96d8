"""Pictures hold the numbers that they are of."""

import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.analysis.examples import LAYER, VISIBLE, counting, tokens_of
from tracerelay_jax import InputError
from tracerelay_jax.analysis import Regression, pictures, unroll

TOKENS = tokens_of(3, rows=2)
TRAJECTORY = counting(TOKENS, np.random.default_rng(1).normal(size=(VISIBLE, 3, 5)))


def panels(number=1):
    return Figure().subplots(1, number, squeeze=False)[0]


def test_curves_are_the_unrolled_phases_of_each_lineage():
    (axes,) = panels()
    pictures.unrolled_curves(axes, TRAJECTORY, row=1, dimension=3)
    assert len(axes.lines) == LAYER.stride
    for lineage, line in enumerate(axes.lines):
        positions, phases = line.get_data()
        np.testing.assert_array_equal(positions, np.arange(lineage, TOKENS.shape[1], LAYER.stride))
        np.testing.assert_array_equal(phases[1:], unroll(TRAJECTORY)[1, positions[1:], 3])
        assert np.isnan(phases[0])  # not begun
    assert "(rad)" in axes.get_ylabel()


def test_hands_point_at_the_last_phases():
    axes = panels(LAYER.stride)
    pictures.circles(axes, TRAJECTORY, row=1, dimension=2)
    for lineage, panel in enumerate(axes):
        last = TRAJECTORY.phase[1, lineage :: LAYER.stride, 2][-1]
        x, y = panel.collections[0].get_offsets()[-1]
        np.testing.assert_allclose((x, y), (np.cos(last), np.sin(last)), atol=1e-9)


def test_a_lineage_that_has_not_begun_has_no_hand():
    axes = panels(LAYER.stride)
    pictures.circles(axes, TRAJECTORY._replace(lineage_valid=np.zeros_like(TRAJECTORY.lineage_valid)))
    assert not any(panel.collections for panel in axes)


def test_maps_hold_phases_and_rates():
    phases, rates, angles = panels(3)
    image = pictures.phase_map(phases, TRAJECTORY, row=1, dimensions=[4, 0])
    pictures.angle_bar(image, angles)
    shown = np.ma.filled(image.get_array(), np.nan)
    np.testing.assert_array_equal(shown[:, LAYER.stride :], TRAJECTORY.phase[1, LAYER.stride :, [4, 0]])
    assert np.isnan(shown[:, : LAYER.stride]).all()
    rate = np.random.default_rng(2).normal(size=(3, 5))
    pictures.rate_map(rates, rate)
    low, high = rates.images[0].get_clim()
    assert -low == high == np.abs(rate).max()


def test_symbols_have_colours_of_their_own():
    curves, strip = panels(2)
    pictures.symbol_curves(curves, np.arange(4), np.arange(12).reshape(4, 3))
    assert [line.get_color() for line in curves.lines] == list(pictures.OKABE_ITO[:3])
    pictures.symbol_strip(strip, TOKENS[0], 3)
    np.testing.assert_array_equal(strip.child_axes[0].images[0].get_array()[0], TOKENS[0])
    assert strip.get_xlim() == strip.child_axes[0].get_xlim() == (-0.5, TOKENS.shape[1] - 0.5)
    pictures.share_bars(curves, {"on": 0.75, "off": 0.0})
    assert [text.get_text().strip() for text in curves.texts] == ["75%", "0%"]


def test_shares_and_what_fits_explain():
    shares, explained = panels(2)
    pictures.share_curve(shares, np.array([3, 1, 3, 3, 1]), np.array([True, False, False, True, False]))
    values, heights = shares.lines[0].get_data()
    np.testing.assert_array_equal(values, [1, 3])
    np.testing.assert_allclose(heights, [0, 2 / 3])
    fit = Regression(np.zeros((2, 3)), np.zeros(3), np.array([0.2, 0.9, 0.5]))
    pictures.explained_curves(explained, {"one": fit})
    np.testing.assert_array_equal(explained.lines[0].get_ydata(), [0.9, 0.5, 0.2])


def test_what_is_not_there_is_named():
    (axes,) = panels()
    for attempt, message in (
        (lambda: pictures.circles([axes], TRAJECTORY), "axes=1: must be one for each of 4 lineages"),
        (lambda: pictures.unrolled_curves(axes, TRAJECTORY, row=2), "row=2: must be from 0 to 1"),
        (lambda: pictures.unrolled_curves(axes, TRAJECTORY, dimension=5), "dimension=5: must be from 0 to 4"),
        (lambda: pictures.symbol_colours(9), "symbols=9: must be from 1 to 8, the colours that can be told apart"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            attempt()
