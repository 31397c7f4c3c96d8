import re


def blocks(root, language):
    return re.findall(rf"```{language}\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)


def test_the_code_in_the_readme_runs(root, capsys):
    code = blocks(root, "python")
    assert all(len(block.splitlines()) < 30 for block in code)
    exec(compile("\n".join(code), "README.md", "exec"), {})
    assert capsys.readouterr().out == "(2, 1, 6)\n(2, 20)\n[2 4 0 1 3 5]\n"


def test_files_that_the_readme_names_exist(root):
    commands = "\n".join(blocks(root, "bash"))
    for path in re.findall(r"(?:launch|configs)/\w+\.py", commands) + re.findall(
        r"\]\((\S+\.png)\)", (root / "README.md").read_text()
    ):
        assert (root / path).is_file(), path


def test_its_table_of_results_is_the_report_s(root):
    rows = re.findall(r"^\| (?:Equal Repeats|Dyck|Most-Freq) \|.*$", (root / "README.md").read_text(), re.MULTILINE)
    assert rows
    done = re.search(r"\d+ finished runs \(.*?\); the paper has 36", (root / "README.md").read_text())[0]
    assert done in (root / "results" / "report" / "README.md").read_text()
    assert set(rows) <= set((root / "results" / "report" / "README.md").read_text().splitlines())
