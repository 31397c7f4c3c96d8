"""The configs of the reconstruction study."""

import pathlib

import pytest

from tracerelay_jax.protocol import config_from_file
from tracerelay_jax.report.reconstruction.candidates import CANDIDATES
from tracerelay_jax.sweep.plan import configs_of

STUDY = pathlib.Path(__file__).resolve().parents[2] / "configs" / "reconstruction.py"


def study_configs(argument):
    return configs_of(config_from_file(STUDY, argument), [])


@pytest.fixture(scope="session")
def planned():
    return {one.name: study_configs(f"candidate={one.name}") for one in CANDIDATES}
