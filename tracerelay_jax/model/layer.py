"""The TraceRelay layer, Eqs. (1)-(7) of the paper in their order."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from tracerelay_jax.config import LayerConfig, check_config
from tracerelay_jax.errors import InputError
from tracerelay_jax.model.cache import PHASE_OPS, LayerCache, check_layer_cache, check_valid, init_layer_cache
from tracerelay_jax.model.modules import GatedFFN, Linear, Projections, RMSNorm, initializer
from tracerelay_jax.ops.attention import local_attention
from tracerelay_jax.ops.lineages import lineage_any


class TraceRelayLayer(nn.Module):
    """One layer over a chunk of a sequence, continuing from `cache`; letters as in `tracerelay_jax.config`.

    With `mutable=["intermediates"]` it also gives `increment` (by arrival), `phase` and `lineage_valid` of each position.
    """

    config: LayerConfig

    @nn.compact
    def __call__(
        self, h_BTH: jax.Array, valid_BT: jax.Array | None = None, cache: LayerCache | None = None, last: int | None = None
    ) -> tuple[jax.Array, LayerCache]:
        """Runs the next T positions.

        Args:
          h_BTH: (B, T, H) h^{l-1}, of the configuration's dtype.
          valid_BT: (B, T) bool, False at inputs that are never seen; all True if None.
          cache: the state after the positions before, by default that of a sequence's start.
          last: gives h^l at as many of the last positions only: all positions write, and only what these see is read.

        Returns:
          h^l (B, T or last, H), of the dtype of h^{l-1}, and the cache after the last position.

        Raises:
          InputError: for h^{l-1} of another width or dtype, valid_BT of another shape or not bool, or a cache of another
            configuration, batch size or dtype.
        """
        c = self.config
        check_config(c, LayerConfig)
        valid_BT, cache = _checked(c, h_BTH, valid_BT, cache)
        phases = PHASE_OPS[c.phase]
        outputs = min(last or h_BTH.shape[1], h_BTH.shape[1])
        read = min(outputs + c.left_window, h_BTH.shape[1])  # the positions that Left attention sees for these

        delta_BTD, q_BT, right = self._right_writer(h_BTH, valid_BT, cache)  # Eq. (1)
        u = phases.increments(jnp.where(q_BT[..., None], delta_BTD, 0.0))  # Eq. (2)

        if c.inherit_phase:  # Eq. (3), by the sums of Eq. (7)
            theta = phases.accumulate(u, cache.phase)
            v_BT = lineage_any(q_BT, cache.lineage_valid)
        else:  # the ablation of Section 3
            theta = phases.wrap(u)
            v_BT = q_BT
        for name, value in (("increment", u), ("phase", theta), ("lineage_valid", v_BT)):
            self.sow("intermediates", name, value)

        tail = {"phase": jax.tree.map(_last, cache.phase, theta), "lineage_valid": _last(cache.lineage_valid, v_BT)}
        h_BTH, valid_BT, theta, v_BT = jax.tree.map(lambda x: x[:, -read:], (h_BTH, valid_BT, theta, v_BT))

        cos_BTD, sin_BTD = phases.cos_sin(theta)  # Eq. (4); zeros until the lineage has received a valid update
        readout = jnp.where(v_BT[..., None], jnp.concatenate([cos_BTD, sin_BTD], axis=-1), 0.0)
        m_BTH = h_BTH + Linear(c, c.hidden, initializer(c, c.readout_init_scale), name="P_phi")(readout.astype(h_BTH.dtype))

        o_left, left = self._left_reader(m_BTH, valid_BT, cache, outputs)  # Eq. (5)

        h_tilde_BTH = m_BTH[:, -outputs:] + Linear(c, c.hidden, name="P_L")(o_left)  # Eq. (6)
        out_BTH = h_tilde_BTH + GatedFFN(c, name="ffn")(RMSNorm(c, name="ffn_norm")(h_tilde_BTH))
        return out_BTH, LayerCache(**right, **tail, **left)

    def _right_writer(self, h_BTH, valid_BT, cache: LayerCache):
        """Increments by arrival (B, T, D), float32 radians, whether their centres are valid (B, T), and what to cache.

        The last W positions and the chunk stand in one row, and the centre of what arrives at t stands W before it: the
        delay of Eq. (2) is that only the first T of these W + T positions are centres.
        """
        c, length = self.config, h_BTH.shape[1]
        query, key, value = Projections(c, c.writer_width, name="right")(RMSNorm(c, name="right_norm")(h_BTH))
        row = _after_cache(cache, right_query=query, right_key=key, right_value=value, right_valid=valid_BT)
        centres, *context = (x[:, : length + c.right_window] for x in row.values())
        o_right = local_attention(centres[:, :length], *context, 0, c.right_window, c.position, c.attention)
        o_right = Linear(c, c.writer_width, name="right_out")(_merge_heads(o_right))
        increment = Linear(c, c.trace_width, initializer(c, c.increment_init_scale), name="P_delta")(o_right)
        delta_BTD = c.alpha * jnp.tanh(increment).astype(jnp.float32)  # Eq. (1)
        return delta_BTD, row["right_valid"][:, :length], {name: x[:, length:] for name, x in row.items()}

    def _left_reader(self, m_BTH, valid_BT, cache: LayerCache, outputs: int):
        """Left attention at the last `outputs` of the positions (B, outputs, reader width), and what the cache keeps."""
        c, length = self.config, m_BTH.shape[1]
        query, key, value = Projections(c, c.reader_width, name="left")(RMSNorm(c, name="left_norm")(m_BTH))
        row = _after_cache(cache, left_key=key, left_value=value, left_valid=valid_BT)
        context = [x[:, x.shape[1] - c.left_window - outputs :] for x in row.values()]
        o_left = local_attention(query[:, -outputs:], *context, c.left_window, 0, c.position, c.attention)
        o_left = Linear(c, c.reader_width, name="left_out")(_merge_heads(o_left))
        return o_left, {name: x[:, length:] for name, x in row.items()}


def _checked(config: LayerConfig, h_BTH, valid_BT, cache) -> tuple[jax.Array, LayerCache]:
    """The validity and the cache of these inputs, filled in where they are None."""
    if h_BTH.ndim != 3 or h_BTH.shape[-1] != config.hidden or h_BTH.dtype != config.dtype:
        raise InputError(f"h_BTH={h_BTH.dtype}{list(h_BTH.shape)}: must be {config.dtype}[B, T, {config.hidden}]")
    batch_size, length, _ = h_BTH.shape
    if valid_BT is None:
        valid_BT = jnp.ones((batch_size, length), bool)
    check_valid(valid_BT, (batch_size, length))
    if cache is None:
        return valid_BT, init_layer_cache(config, batch_size)
    check_layer_cache(config, batch_size, cache)
    return valid_BT, cache


def _merge_heads(x_BTNK: jax.Array) -> jax.Array:
    return x_BTNK.reshape(*x_BTNK.shape[:2], -1)


def _after_cache(cache: LayerCache, **chunk: jax.Array) -> dict[str, jax.Array]:
    """Each field of the cache, followed by the chunk's positions."""
    return {name: jnp.concatenate([getattr(cache, name), x], axis=1) for name, x in chunk.items()}


def _last(tail: jax.Array, chunk: jax.Array) -> jax.Array:
    """The last W of the positions in `tail` (B, W, ...) followed by `chunk` (B, T, ...)."""
    return jnp.concatenate([tail, chunk], axis=1)[:, chunk.shape[1] :]
