"""Griffin of the package recurrentgemma: two recurrent blocks and one of local attention, its repeating pattern."""

import importlib.metadata
from functools import partial

import jax
import jax.numpy as jnp
from recurrentgemma.common import GriffinConfig, ScanType, TemporalBlockType
from recurrentgemma.jax import Griffin

from tracerelay_jax.benchmarks.peers.peer import Peer, fit

# The proportions of its presets: an RG-LRU as wide as the model, an MLP about three times as wide, and the smaller of their
# two windows. As deep as TraceRelay here.
_WIDTH, _HEADS, _WINDOW = 88, 2, 1024
_PATTERN = (TemporalBlockType.RECURRENT, TemporalBlockType.RECURRENT, TemporalBlockType.ATTENTION)
# AUTO is the package's own choice, on a CPU a loop unrolled by 128, whose gradient takes minutes to compile.
_SCANS = (ScanType.ASSOCIATIVE_NATIVE, ScanType.AUTO)


def griffin(symbols: int, parameters: int) -> Peer:
    """Its embeddings, of the input symbols, are its head as well."""
    return fit(partial(_peer, symbols), parameters)


def _peer(symbols: int, mlp_width: int) -> Peer:
    config = GriffinConfig(
        vocab_size=symbols,
        width=_WIDTH,
        mlp_expanded_width=mlp_width,
        num_heads=_HEADS,
        lru_width=_WIDTH,
        block_types=_PATTERN,
        embeddings_scale_by_sqrt_dim=True,
        attention_window_size=_WINDOW,
        logits_soft_cap=30.0,
    )
    # Without checkpoints of its blocks, which save memory and take time.
    models = {scan.name: Griffin(config._replace(scan_type=scan), gradient_checkpointing=False) for scan in _SCANS}
    model = next(iter(models.values()))

    def state(batch, context, room):
        cache = model.init_cache(batch, jnp.float32)
        tokens = jnp.full(batch, context, jnp.int32)
        return {
            name: block._replace(num_tokens=tokens) if hasattr(block, "num_tokens") else block
            for name, block in cache.items()
        }

    return Peer(
        name="griffin",
        settings={
            "package": f"recurrentgemma {importlib.metadata.version('recurrentgemma')}",
            **config._asdict(),
            "block_types": [kind.name for kind in _PATTERN],
            "scan_type": list(models),
            "gradient_checkpointing": False,
        },
        init=lambda key: model.init(key, jnp.zeros((1, 1), jnp.int32), jnp.zeros((1, 1), jnp.int32)),
        forward={scan: partial(_logits, model) for scan, model in models.items()},
        prefill={
            **{f"at once, {scan}": partial(_prefill, model) for scan, model in models.items()},
            "token by token": partial(_prefill_by_steps, model, state),  # all that its caches go on by
        },
        step={"cache": partial(_step, model)},
        state=state,
    )


def _logits(model: Griffin, params, tokens: jax.Array, last: int | None) -> jax.Array:
    logits = model.apply(params, tokens, _positions(tokens), return_cache=False)[0]
    return logits if last is None else logits[:, -last:]


def _prefill(model: Griffin, params, tokens: jax.Array, room: int):
    _, state = model.apply(params, tokens[:, :-1], _positions(tokens[:, :-1]), return_logits=False)  # as its Sampler does
    return _step(model, params, tokens[:, -1:], tokens.shape[1] - 1, state)


def _prefill_by_steps(model: Griffin, make_state, params, tokens: jax.Array, room: int):
    def step(state, numbered):
        position, token = numbered
        logits, state = _step(model, params, token[:, None], position, state)
        return state, logits

    length = tokens.shape[1]
    state, logits = jax.lax.scan(step, make_state(len(tokens), 0, room), (jnp.arange(length), tokens.T))
    return logits[-1], state


def _step(model: Griffin, params, tokens: jax.Array, position, state):
    logits, state = model.apply(params, tokens, jnp.full(tokens.shape, position, jnp.int32), state)
    return logits[:, -1], state


def _positions(tokens: jax.Array) -> jax.Array:
    return jnp.broadcast_to(jnp.arange(tokens.shape[1]), tokens.shape)
