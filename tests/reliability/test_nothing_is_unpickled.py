"""Nothing in the program unpickles, marshals or evaluates what it reads."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import spmrl_bench
from tests.reliability.tally import Tally

PACKAGE = Path(spmrl_bench.__file__).parent
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "jsonpickle", "yaml"}
CALLS = {
    "torch.load", "joblib.load", "pandas.read_pickle", "pd.read_pickle",
    "pandas.read_hdf", "pd.read_hdf", "eval", "exec", "compile", "torch.hub.load", "torch.jit.load",
    "torch.package.PackageImporter",
}  # fmt: skip

#: What hands jobs to SLURM and takes their answers, by way of submitit, which pickles both. Only
#: what belongs to this user is read.
JOBS = {"process/executors/slurm.py"}


def mistakes(source: str) -> list[str]:
    """What a module does that may run the code of a file."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        found += [name for name in names if name.split(".")[0] in MODULES or name in CALLS]
        if not isinstance(node, ast.Call):
            continue
        name, given = ast.unparse(node.func), {word.arg: word.value for word in node.keywords}
        if name in CALLS:
            found.append(name)
        for key in ("allow_pickle", "trust_remote_code", "shell"):
            if key in given and ast.unparse(given[key]) != "False":
                found.append(f"{name}({key})")
        # NumPy has allow_pickle = False by itself, and it is said all the same.
        if name in ("np.load", "numpy.load") and "allow_pickle" not in given:
            found.append(name)
        if name.endswith("importlib.import_module") and given:
            found.append(name)
    return found


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from dill import loads",
        "import torch\ntorch.load(path, weights_only=True)",
        "import joblib\njoblib.load(path)",
        "from joblib import load",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "model.from_pretrained(path, trust_remote_code=True)",
        "eval(text)",
        "def f():\n    import marshal",
    ],
)
def test_a_mistake_is_found(source: str) -> None:
    assert mistakes(source)


def test_no_module_unpickles(tally: Tally) -> None:
    held = tally("R17", "modules searched for what runs the code of a file")
    files = sorted(PACKAGE.rglob("*.py")) + sorted(PACKAGE.rglob("*.pyx"))
    assert len(files) > 200
    found = {}
    for path in files:
        held.add()
        source = path.read_text(encoding="utf-8")
        if path.suffix == ".pyx":  # no Python: its words have to do
            lines = [
                line.split()[1] for line in source.splitlines() if "import" in line.split()[:1]
            ]
            wrong = [name for name in lines if name.split(".")[0] in MODULES]
        else:
            wrong = mistakes(source)
        if wrong:
            found[path.relative_to(PACKAGE).as_posix()] = wrong
    assert found == {name: ["pickle"] for name in JOBS}
