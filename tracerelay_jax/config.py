"""The configuration of the network: a frozen, hashable dataclass, checked when it is made.

Dimension letters used throughout the package, in the paper's notation (Section 2.1):

    B batch · T time · H residual width · D trace width · N heads · K head width · W stride
    L, R windows · F FFN width · V symbols · S keys, the chunk with its context
"""

import dataclasses
import functools
import math
import re
import sys

import numpy as np

from tracerelay_jax.errors import InputError

POSITIONS = ("none", "rope", "alibi")
INITIALISATIONS = ("normal", "uniform")
DTYPES = ("float32", "bfloat16")
PHASES = ("turns", "radians")
ATTENTIONS = ("auto", "reference", "windowed", "pallas", "pallas_interpret")
_WINDOWS = ("left_window", "right_window", "stride")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Shared:
    """What all layers of a network have alike; described in `TraceRelayConfig`."""

    hidden: int = 64
    ffn: int = 256
    heads: int = 4
    alpha: float = math.pi
    inherit_phase: bool = True
    phase: str = "turns"
    position: str = "rope"
    init: str = "normal"
    init_scale: float = 0.02
    increment_init_scale: float = 0.0
    readout_init_scale: float = 0.0
    dtype: str = "float32"
    product_dtype: str = ""
    attention: str = "auto"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LayerConfig(_Shared):
    """One layer, by default the paper's; for the rest of the fields see `TraceRelayConfig`.

    Attributes:
      trace_width: D, its phases.
      writer_width: width of Right attention; 0 for the trace width.
      reader_width: width of Left attention; 0 for the trace width.
      left_window: L, preceding positions that Left attention sees, besides its centre.
      right_window: R, following positions that Right attention sees, besides its centre.
      stride: W, positions between a write's centre and its arrival; W > R keeps the layer causal.

    Raises:
      InputError: naming the field, its value and what is allowed.
    """

    trace_width: int = 64
    writer_width: int = 0
    reader_width: int = 0
    left_window: int = 15
    right_window: int = 7
    stride: int = 8

    def __post_init__(self):
        for name in ("writer_width", "reader_width"):
            object.__setattr__(self, name, getattr(self, name) or self.trace_width)
        _check_shared(self)
        _check_layer(self)


@dataclasses.dataclass(frozen=True)
class TraceRelayConfig(_Shared):
    """A stack of TraceRelay layers between a one-hot input projection and a linear head.

    `left_window`, `right_window` and `stride` are one number for all layers, or a tuple with one for each.

    Attributes:
      inputs: input symbols, the width of the one-hot input.
      outputs: logits a position.
      hidden: H, width of the residual stream.
      ffn: F, width of the gated FFN.
      heads: N, heads of both attentions; divides every attention width.
      trace_widths: D of each layer, its phases; the number of layers is its length.
      writer_widths: width of each layer's Right attention; empty for the trace widths.
      reader_widths: width of each layer's Left attention; empty for the trace widths.
      left_window: L, preceding positions that Left attention sees, besides its centre.
      right_window: R, following positions that Right attention sees, besides its centre.
      stride: W, positions between a write's centre and its arrival; W > R keeps the layer causal.
      alpha: the increment's bound in radians, Eq. (1).
      inherit_phase: False gives the ablation of Section 3: theta_t = wrap(u_t), v_t = q_t.
      phase: `turns`, 32-bit integers of which 2**32 make a turn, exact over any horizon; or `radians`, float32.
      position: position information in both attentions, always relative to the query: `none`, `rope` or `alibi`.
      init: `normal` of standard deviation `init_scale`, or `uniform` within 1/sqrt(fan in).
      adapter_init: the same for the input projection and the head, which are the task's; empty for that of the layers.
      init_scale: standard deviation of `normal`.
      increment_init_scale: standard deviation of P_delta, which is then normal; 0 treats it like every other map.
      readout_init_scale: that of P_phi, likewise.
      dtype: of activations. Parameters, phases, norms, softmax and loss are float32 in either case.
      product_dtype: of the inputs of products with weights, whose sums are float32; empty for the dtype of activations.
      attention: implementation of the local attentions; `auto` chooses by device.

    Raises:
      InputError: naming the field, its value and what is allowed.
    """

    inputs: int
    outputs: int
    trace_widths: tuple[int, ...] = (64, 64, 64)
    writer_widths: tuple[int, ...] = ()
    reader_widths: tuple[int, ...] = ()
    left_window: int | tuple[int, ...] = 15
    right_window: int | tuple[int, ...] = 7
    stride: int | tuple[int, ...] = 8
    adapter_init: str = ""

    def __post_init__(self):
        for name in ("trace_widths", "writer_widths", "reader_widths", "left_window", "right_window", "stride"):
            value = getattr(self, name)
            if isinstance(value, list):  # a JSON file holds lists; a frozen config must stay hashable
                object.__setattr__(self, name, tuple(value))
        for name in ("inputs", "outputs"):
            _require_int(self, name, 1)
        _require_choice(self, "adapter_init", ("", *INITIALISATIONS))
        _check_lengths(self)
        try:
            _ = self.layers  # which check themselves
        except InputError as error:
            raise InputError(re.sub("^(trace|writer|reader)_width=", r"\1_widths=", str(error))) from None

    @functools.cached_property
    def layers(self) -> tuple[LayerConfig, ...]:
        """The configuration of each layer, from the input to the output."""
        shared = {field.name: getattr(self, field.name) for field in dataclasses.fields(_Shared)}
        own = {
            "trace_width": self.trace_widths,
            "writer_width": self.writer_widths or self.trace_widths,
            "reader_width": self.reader_widths or self.trace_widths,
            **{name: _per_layer(self, name) for name in _WINDOWS},
        }
        return tuple(
            LayerConfig(**shared, **dict(zip(own, values, strict=True))) for values in zip(*own.values(), strict=True)
        )


def check_config(config, kind: type[_Shared]) -> None:
    """Raises InputError unless `config` is of this kind."""
    if not isinstance(config, kind):
        raise InputError(f"config of type {type(config).__name__}: must be a {kind.__name__}")


def _per_layer(config: TraceRelayConfig, name: str) -> tuple[int, ...]:
    value = getattr(config, name)
    value = value if isinstance(value, tuple) else (value,)
    return value * len(config.trace_widths) if len(value) == 1 else value


def _require(holds: bool, field: str, value, allowed: str):
    if not holds:
        raise InputError(f"{field}={value!r}: {allowed}")


def _require_choice(config, name: str, choices: tuple[str, ...]):
    value = getattr(config, name)
    _require(value in choices, name, value, f"must be one of {', '.join(map(repr, choices))}")


def _require_int(config, name: str, least: int):
    value = getattr(config, name)
    integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    _require(integer and value >= least, name, value, f"must be an integer of at least {least}")


def _require_number(config, name: str, least: float, allowed: str):
    value = getattr(config, name)
    _require(isinstance(value, int | float) and least <= value < math.inf, name, value, allowed)


def _check_shared(config: _Shared):
    for name in ("hidden", "ffn", "heads"):
        _require_int(config, name, 1)
    for name, choices in (("phase", PHASES), ("position", POSITIONS), ("init", INITIALISATIONS),
                          ("dtype", DTYPES), ("product_dtype", ("", *DTYPES)), ("attention", ATTENTIONS)):  # fmt: skip
        _require_choice(config, name, choices)
    _require_number(config, "alpha", sys.float_info.min, "must be a positive number of radians")
    _require_number(config, "init_scale", sys.float_info.min, "must be positive")
    for name in ("increment_init_scale", "readout_init_scale"):
        _require_number(config, name, 0.0, "must be positive, or 0 for the same as the rest")
    _require(isinstance(config.inherit_phase, bool), "inherit_phase", config.inherit_phase, "must be True or False")


def _check_layer(config: LayerConfig):
    for name in ("trace_width", "writer_width", "reader_width"):
        _require_int(config, name, 1)
    for name in ("writer_width", "reader_width"):
        width = getattr(config, name)
        name = "trace_width" if width == config.trace_width else name
        _require(width % config.heads == 0, name, width, f"must be divisible by heads={config.heads}")
        even = config.position != "rope" or (width // config.heads) % 2 == 0
        _require(even, name, width, f"position='rope' needs an even width for each of heads={config.heads}")
    for name, least in zip(_WINDOWS, (0, 0, 1), strict=True):
        _require_int(config, name, least)
    right, stride = config.right_window, config.stride
    past = "a write may only arrive when everything it saw is in the past"
    _require(stride > right, "stride", stride, f"must exceed right_window={right}: {past}")


def _check_lengths(config: TraceRelayConfig):
    widths = config.trace_widths
    _require(isinstance(widths, tuple) and len(widths) >= 1, "trace_widths", widths,
             "must hold one width for each layer, at least one")  # fmt: skip
    for name in ("writer_widths", "reader_widths"):
        value = getattr(config, name)
        _require(isinstance(value, tuple) and len(value) in (0, len(widths)), name, value,
                 f"must be empty or hold {len(widths)} widths, one a layer")  # fmt: skip
    for name in _WINDOWS:
        values = _per_layer(config, name)
        _require(len(values) == len(widths), name, values, f"must be one number or {len(widths)}, one a layer")
