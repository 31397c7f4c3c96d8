"""AdamW with linear warm-up and a clipped gradient norm (Table 2)."""

import optax

from tracerelay_jax.experiment import TrainingConfig


def make_optimizer(config: TrainingConfig) -> optax.GradientTransformation:
    """Clip by global norm, then AdamW with decay on every parameter; update n of the warm-up has n / warm-up of the rate."""
    rate, warmup = config.learning_rate, config.warmup_updates
    schedule = optax.linear_schedule(rate / warmup, rate, warmup - 1) if warmup > 1 else rate
    return optax.chain(
        optax.clip_by_global_norm(config.gradient_clip),
        optax.adamw(schedule, config.beta1, config.beta2, config.epsilon, weight_decay=config.weight_decay),
    )
