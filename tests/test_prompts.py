"""Sources as lines of text, and the answers to them."""

import re

import jax
import numpy as np
import pytest

from tests import tiny
from tests.model.test_network import make
from tracerelay_jax import InputError, Sampling, tasks, trained
from tracerelay_jax.evaluation.examples import make_examples
from tracerelay_jax.experiment import make_experiment
from tracerelay_jax.prompts import answer, read_sources


@pytest.mark.parametrize(
    ("task", "lines", "message"),
    [
        ("most_freq", ["0 1 2", "0 x"], "line 2: 'x': must be symbols as whole numbers"),
        ("most_freq", ["0 1 2", "0 -1"], "line 2: '-1': must be symbols as whole numbers"),
        ("most_freq", ["0 1 5"], "line 1: source[2]=5: must be a symbol from 0 to 4"),
        ("most_freq", ["0", "", "1"], "line 2: source=[]: must hold at least one symbol"),
        ("dyck", ["0 1 9 8", "0 1 8"], "line 2: source[2]=8: must close the bracket that was opened last"),
        ("dyck", ["8"], "line 1: source[0]=8: must close the bracket that was opened last"),
        ("dyck", ["0 " * 11], "line 1: source[10]=0: must not open more than 10 brackets"),
        ("equal_repeats", ["0 1 2"], "line 1: source[2]=2: must be a symbol from 0 to 1"),
    ],
)
def test_a_line_that_is_no_source_is_named(task, lines, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_sources(lines, tasks.make(task))


SOURCES = {
    "most_freq": ["0 0 1 2 0", "3", "4 1 " * 30],
    "dyck": ["0 1 9 2", "3 4 5", "0 8 " * 20 + "7"],
    "equal_repeats": ["0 0 1 1 0", "0", "0 1 " * 20],
}


def test_a_sampled_answer_depends_on_the_seed_and_not_on_the_batch(root):
    experiment = make_experiment(tiny.config(root, "dyck", model__init_scale=0.8))
    model, params = make(experiment.model)
    sources = read_sources(["0 1 2 3 4 5 6", "7 6 5", "1"], experiment.task)
    answers = {
        (batch_size, seed): list(answer(model, params, experiment.task, sources, batch_size, 16, seed, Sampling(5.0)))
        for batch_size, seed in ((3, 0), (1, 0), (3, 1))
    }
    assert answers[3, 0] == answers[1, 0] != answers[3, 1]


# One model of each task: the widths differ in nothing that matters here.
@pytest.mark.parametrize("name", [f"{task}-dc16-seed42" for task in SOURCES])
def test_answers_of_a_shipped_model_equal_repeated_full_forward_passes(name):
    model, params, task = trained.read(name)
    check_against_full_passes(model, params, task, 160)


def check_against_full_passes(model, params, task, length):
    """On sources written by hand, and on six of the task's examples, cut off at several lengths."""
    batch = make_examples(task, seed=1, length=length, count=6).batch
    sources = read_sources(SOURCES[task.name], task) + [row[: length - n].tolist() for n, row in enumerate(batch.tokens)]
    got = list(answer(model, params, task, sources, batch_size=2, chunk=16, seed=0, sampling=Sampling()))
    apply = jax.jit(lambda params, tokens: model.apply(params, tokens)[0])
    longest = max(map(len, sources)) + 1 + task.answer_limit
    for source, outputs in zip(sources, got, strict=True):
        stream, wanted = task.prompt(source), []
        for _ in range(task.answer_length(source)):
            logits = apply(params, np.array([stream + [0] * (longest - len(stream))]))[0, len(stream) - 1]
            wanted.append(int(np.argmax(logits)))
            stream.append(int(task.feed_back(np.array(wanted[-1]))))
            if wanted[-1] in task.stop:
                break
        assert outputs == wanted
    assert any(got)
