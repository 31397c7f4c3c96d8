import importlib.metadata

from tracerelay_jax import machine


def test_a_package_that_is_not_installed_has_no_version(monkeypatch):
    """The code may be on the path alone; a run's result is written all the same."""

    def version(name, installed=importlib.metadata.version):
        if name == "tracerelay_jax":
            raise importlib.metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    versions = machine.describe()["versions"]
    assert versions["tracerelay_jax"] is None
    assert versions["jax"].count(".") == 2
