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


def test_other_code_has_other_digits(tmp_path):
    names = ("a.py", "sub/b.py", "data.json")
    (tmp_path / "sub").mkdir()

    def digits(*contents):
        for name, content in zip(names, contents, strict=True):
            (tmp_path / name).write_text(content)
        return machine.code(tmp_path)

    whole = digits("x = 1", "y = 2", "{}")
    assert digits("x = 1", "y = 2", "[]") == whole
    assert len({whole, digits("x = 2", "y = 2", "{}"), digits("x = 1y = 2", "", "{}")}) == 3
    (tmp_path / "a.py").rename(tmp_path / "c.py")
    assert machine.code(tmp_path) != machine.code(tmp_path / "sub") != whole
    assert machine.describe()["code"] == machine.code()
