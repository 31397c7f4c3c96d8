"""Generation against repeated full forward passes, and every row against itself alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.test_network import SMALL, make
from tracerelay_jax import InputError, Sampling, generate, left_pad
from tracerelay_jax.generation import choose_outputs

STEPS = 6


@pytest.fixture(scope="module")
def model_and_params():
    return make(SMALL, seed=3)


def feed_back(output):
    return output + 1


def run(model, params, prompts, **options):
    tokens, valid = left_pad(prompts)
    call = jax.jit(lambda params, tokens, valid: generate(model, params, tokens, valid, feed_back=feed_back, **options))
    return jax.tree.map(np.asarray, call(params, tokens, valid))


PROMPTS = [[0, 1, 2, 3, 4, 0, 1], [3], [2, 2, 1, 0, 4, 4, 4, 1, 2, 0, 3]]


def full_forward(model, params, prompt, steps):
    """The likeliest outputs, each from a whole pass over all that came before."""
    apply = jax.jit(lambda params, tokens: model.apply(params, tokens)[0])
    stream, outputs = list(prompt), []
    for _ in range(steps):
        padded = np.array([stream + [0] * (20 - len(stream))])  # what follows is never seen
        outputs.append(int(np.argmax(apply(params, padded)[0, len(stream) - 1])))
        stream.append(feed_back(outputs[-1]))
    return outputs


def test_greedy_generation_equals_repeated_full_forward_passes(model_and_params):
    outputs, lengths = run(*model_and_params, PROMPTS, steps=STEPS, chunk=4)
    for row, prompt in enumerate(PROMPTS):
        assert outputs[row].tolist() == full_forward(*model_and_params, prompt, STEPS)
    assert lengths.tolist() == [STEPS] * 3
    assert len(np.unique(outputs)) > 1


def test_no_chunk_of_the_prefill_changes_an_output(model_and_params):
    outputs = [run(*model_and_params, PROMPTS, steps=STEPS, chunk=chunk).outputs for chunk in (1, 5, 32, 100)]
    for other in outputs[1:]:
        np.testing.assert_array_equal(other, outputs[0])


def test_generation_goes_on_from_a_cache(model_and_params):
    model, params = model_and_params
    prompt = np.array([PROMPTS[0], PROMPTS[2][:7]])
    _, cache = model.apply(params, prompt[:, :2])
    whole = generate(model, params, prompt, steps=STEPS, feed_back=feed_back)
    tail = generate(model, params, prompt[:, 2:], steps=STEPS, feed_back=feed_back, cache=cache, chunk=2)
    np.testing.assert_array_equal(tail.outputs, whole.outputs)
    padded = np.array([[False, True, True]] * 2)
    tail = generate(model, params, prompt[:, 2:5], padded, steps=STEPS, feed_back=feed_back, cache=cache, chunk=1)
    whole = generate(model, params, prompt[:, :5], np.pad(padded, ((0, 0), (2, 0)), constant_values=True), steps=STEPS,
                     feed_back=feed_back)  # fmt: skip
    np.testing.assert_array_equal(tail.outputs, whole.outputs)
    with pytest.raises(InputError, match="cache"):
        generate(model, params, prompt[:1], steps=STEPS, cache=cache)


def test_a_row_stops_at_a_stop_symbol_and_the_others_go_on(model_and_params):
    free = run(*model_and_params, PROMPTS, steps=STEPS).outputs
    stop = int(free[0, 1])
    stopped = run(*model_and_params, PROMPTS, steps=STEPS, stop=(stop,))
    for row in range(3):
        ends = np.flatnonzero(free[row] == stop)
        length = ends[0] + 1 if ends.size else STEPS
        assert stopped.lengths[row] == length
        np.testing.assert_array_equal(stopped.outputs[row, :length], free[row, :length])
        assert (stopped.outputs[row, length:] == stop).all()


@pytest.mark.parametrize("sampling", [Sampling(0.7), Sampling(2.0, top_k=2), Sampling(0.5, top_k=1), Sampling(9.0, top_k=3)])
def test_sampling_follows_the_distribution(sampling):
    """Counts of 4,000 outputs within 4 SD of what temperature and top-k make of the logits; two are equal."""
    count, logits = 4000, np.array([0.3, 1.1, -1.0, 0.3])
    keys = jax.random.split(jax.random.key(5), count)
    outputs = choose_outputs(jnp.broadcast_to(jnp.asarray(logits, jnp.float32), (count, 4)), keys, 3, sampling)
    kept = np.argsort(np.argsort(-logits, stable=True)) < (sampling.top_k or len(logits))
    chances = np.where(kept, np.exp(logits / sampling.temperature), 0)
    chances /= chances.sum()
    deviation = np.sqrt(count * chances * (1 - chances))
    assert (np.abs(np.bincount(outputs, minlength=4) - count * chances) <= 4 * deviation).all()


def test_a_row_sampled_in_a_batch_equals_the_row_alone(model_and_params):
    model, params = model_and_params
    keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(1), jnp.arange(3))

    @jax.jit
    def sample(tokens, valid, keys):
        return generate(model, params, tokens, valid, steps=STEPS, key=keys, sampling=Sampling(temperature=1.5)).outputs

    together = sample(*left_pad(PROMPTS), keys)
    for row, prompt in enumerate(PROMPTS):
        np.testing.assert_array_equal(together[row], sample(*left_pad([prompt]), keys[row : row + 1])[0])


def test_prompt_lengths_share_few_shapes():
    shapes = {left_pad([[0] * length])[0].shape for length in range(1, 1025)}
    assert shapes == {(1, 2**power) for power in range(5, 11)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps=0: must be at least 1"),
        ({"chunk": 0}, "chunk=0: must be at least 1"),
        ({"stop": (4,)}, r"stop=\(4,\): must hold outputs from 0 to 3"),
        ({"sampling": Sampling(temperature=-1.0)}, "temperature=-1.0: must be 0"),
        ({"sampling": Sampling(top_k=5)}, "top_k=5: must be 0, for no limit, or up to 4"),
        ({"sampling": Sampling(temperature=1.0)}, "key=None: must be a typed PRNG key"),
        ({"sampling": Sampling(temperature=1.0), "key": jax.random.PRNGKey(0)}, "must be a typed PRNG key"),
        ({"sampling": Sampling(top_k=2)}, "top_k=2: needs a temperature above 0"),
    ],
)
def test_bad_options(model_and_params, options, message):
    with pytest.raises(InputError, match=message):
        generate(*model_and_params, jnp.zeros((1, 3), jnp.int32), **{"steps": 2, **options})


def test_an_empty_prompt():
    with pytest.raises(InputError, match=r"prompts=\[\]: must hold at least one prompt"):
        left_pad([])
    with pytest.raises(InputError, match=r"prompts\[1\]=\[\]: must hold at least one symbol"):
        left_pad([[1], []])
