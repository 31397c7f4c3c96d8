import jax
import pytest

from tracerelay_jax.hosts import gpus_for_another_program

CUDA, HIP = "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"


@pytest.fixture
def give():
    """Sets the GPUs of this process, as `jax.distributed.initialize` does in a task of Slurm."""

    def set_places(places):
        for setting in ("jax_cuda_visible_devices", "jax_rocm_visible_devices"):
            jax.config.update(setting, places)

    yield set_places
    set_places("all")


@pytest.mark.parametrize(
    ("visible", "chosen"),
    [
        (None, "1"),
        ("4,5,6", "5"),
        ("GPU-aa,GPU-bb", "GPU-bb"),
        ("0", "0"),  # of its own, as with --gpus-per-task=1
        ("", ""),  # none
    ],
)
def test_another_program_has_the_gpus_of_this_process(give, visible, chosen):
    give("1")
    assert gpus_for_another_program({} if visible is None else {CUDA: visible, HIP: visible}) == {CUDA: chosen, HIP: chosen}


def test_where_no_cluster_gives_gpus_nothing_is_hidden():
    assert gpus_for_another_program({CUDA: "0,1"}) == {}
