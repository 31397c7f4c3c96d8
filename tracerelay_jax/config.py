"""The configuration of the network: a frozen, hashable dataclass, checked when it is made.

Dimension letters used throughout the package, in the paper's notation (Section 2.1):

    B batch · T time · H residual width · D trace width · N heads · K head width · W stride
    L, R windows · F FFN width · V symbols · S keys, the chunk with its context
"""

import dataclasses
import math

from tracerelay_jax.errors import InputError

POSITIONS = ("none", "rope", "alibi")
INITIALISATIONS = ("normal", "uniform")
DTYPES = ("float32", "bfloat16")
PHASES = ("turns", "radians")
ATTENTIONS = ("auto", "reference", "windowed", "pallas", "pallas_interpret")


@dataclasses.dataclass(frozen=True)
class LayerConfig:
    """One layer's share of a `TraceRelayConfig`; fields as there, without the choice per layer."""

    hidden: int
    ffn: int
    heads: int
    trace_width: int
    writer_width: int
    reader_width: int
    left_window: int
    right_window: int
    stride: int
    alpha: float
    inherit_phase: bool
    phase: str
    position: str
    init: str
    init_scale: float
    increment_init_scale: float
    dtype: str
    product_dtype: str
    attention: str


@dataclasses.dataclass(frozen=True)
class TraceRelayConfig:
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
      init_scale: standard deviation of `normal`.
      increment_init_scale: standard deviation of P_delta, which is then normal; 0 treats it like every other map.
      dtype: of activations. Parameters, phases, norms, softmax and loss are float32 in either case.
      product_dtype: of the inputs of products with weights, whose sums are float32; empty for the dtype of activations.
      attention: implementation of the local attentions; `auto` chooses by device.

    Raises:
      InputError: naming the field, its value and what is allowed.
    """

    inputs: int
    outputs: int
    hidden: int = 64
    ffn: int = 256
    heads: int = 4
    trace_widths: tuple[int, ...] = (64, 64, 64)
    writer_widths: tuple[int, ...] = ()
    reader_widths: tuple[int, ...] = ()
    left_window: int | tuple[int, ...] = 15
    right_window: int | tuple[int, ...] = 7
    stride: int | tuple[int, ...] = 8
    alpha: float = math.pi
    inherit_phase: bool = True
    phase: str = "turns"
    position: str = "rope"
    init: str = "normal"
    init_scale: float = 0.02
    increment_init_scale: float = 0.0
    dtype: str = "float32"
    product_dtype: str = ""
    attention: str = "auto"

    def __post_init__(self):
        for name in ("trace_widths", "writer_widths", "reader_widths", "left_window", "right_window", "stride"):
            value = getattr(self, name)
            if isinstance(value, list):  # a JSON file holds lists; a frozen config must stay hashable
                object.__setattr__(self, name, tuple(value))
        _check_scalars(self)
        _check_widths(self)
        _check_windows(self)

    @property
    def layers(self) -> tuple[LayerConfig, ...]:
        """The configuration of each layer, from the input to the output."""
        shared = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(LayerConfig)
            if field.name in ("hidden", "ffn", "heads", "alpha", "inherit_phase", "phase", "position", "init",
                              "init_scale", "increment_init_scale", "dtype", "product_dtype", "attention")
        }  # fmt: skip
        per_layer = zip(
            self.trace_widths,
            self.writer_widths or self.trace_widths,
            self.reader_widths or self.trace_widths,
            _per_layer(self, "left_window"),
            _per_layer(self, "right_window"),
            _per_layer(self, "stride"),
            strict=True,
        )
        names = ("trace_width", "writer_width", "reader_width", "left_window", "right_window", "stride")
        return tuple(LayerConfig(**shared, **dict(zip(names, values, strict=True))) for values in per_layer)


def _per_layer(config: TraceRelayConfig, name: str) -> tuple[int, ...]:
    value = getattr(config, name)
    value = value if isinstance(value, tuple) else (value,)
    return value * len(config.trace_widths) if len(value) == 1 else value


def _require(holds: bool, field: str, value, allowed: str):
    if not holds:
        raise InputError(f"{field}={value!r}: {allowed}")


def _is_int(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_scalars(config: TraceRelayConfig):
    for name in ("inputs", "outputs", "hidden", "ffn", "heads"):
        value = getattr(config, name)
        _require(_is_int(value) and value >= 1, name, value, "must be an integer of at least 1")
    for name, choices in (("phase", PHASES), ("position", POSITIONS), ("init", INITIALISATIONS),
                          ("dtype", DTYPES), ("product_dtype", ("", *DTYPES)), ("attention", ATTENTIONS)):  # fmt: skip
        value = getattr(config, name)
        _require(value in choices, name, value, f"must be one of {', '.join(choice or repr(choice) for choice in choices)}")
    _require(0 < config.alpha < math.inf, "alpha", config.alpha, "must be a positive number of radians")
    _require(0 < config.init_scale < math.inf, "init_scale", config.init_scale, "must be positive")
    scale = config.increment_init_scale
    _require(0 <= scale < math.inf, "increment_init_scale", scale, "must be positive, or 0 for the same as the rest")
    _require(isinstance(config.inherit_phase, bool), "inherit_phase", config.inherit_phase, "must be True or False")


def _check_widths(config: TraceRelayConfig):
    layers = len(config.trace_widths)
    _require(layers >= 1, "trace_widths", config.trace_widths, "must hold one width for each layer, at least one")
    for name in ("trace_widths", "writer_widths", "reader_widths"):
        widths = getattr(config, name)
        _require(len(widths) in (0, layers), name, widths, f"must be empty or hold {layers} widths, one a layer")
        for width in widths:
            _require(_is_int(width) and width >= 1, name, widths, "every width must be an integer of at least 1")
    attentions = (("writer_widths", config.writer_widths), ("reader_widths", config.reader_widths))
    for name, widths in attentions:
        name = name if widths else "trace_widths"
        for width in widths or config.trace_widths:
            _require(width % config.heads == 0, name, width, f"must be divisible by heads={config.heads}")
            even = config.position != "rope" or (width // config.heads) % 2 == 0
            _require(even, name, width, f"position='rope' needs an even width for each of heads={config.heads}")


def _check_windows(config: TraceRelayConfig):
    layers = len(config.trace_widths)
    for name, least in (("left_window", 0), ("right_window", 0), ("stride", 1)):
        values = _per_layer(config, name)
        _require(len(values) == layers, name, values, f"must be one number or {layers}, one a layer")
        _require(all(_is_int(value) and value >= least for value in values), name, getattr(config, name),
                 f"must hold integers of at least {least}")  # fmt: skip
    for stride, right in zip(_per_layer(config, "stride"), _per_layer(config, "right_window"), strict=True):
        _require(stride > right, "stride", stride, f"must exceed right_window={right}: a write may only arrive "
                 "when everything it saw is in the past")  # fmt: skip
