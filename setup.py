"""What pyproject.toml cannot say: the data folders that a wheel carries inside the package."""

from __future__ import annotations

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
DATA_FOLDERS = ("recipes", "treebanks", "evalb", "published")


class BuildWithData(build_py):
    """Copies the top-level data folders to ``spmrl_bench/_data/`` in a wheel.

    An editable installation has no copy: there the folders of the checkout are read.
    """

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for source, target in self._data_copies():
                self.mkpath(str(target.parent))
                self.copy_file(str(source), str(target))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        outputs = super().get_outputs(include_bytecode)
        if self.editable_mode:
            return outputs
        return outputs + [str(target) for _, target in self._data_copies()]

    def _data_copies(self) -> list[tuple[Path, Path]]:
        data = Path(self.build_lib) / "spmrl_bench" / "_data"
        return [
            (path, data / path.relative_to(ROOT))
            for folder in DATA_FOLDERS
            for path in sorted((ROOT / folder).rglob("*"))
            if path.is_file()
        ]


setup(cmdclass={"build_py": BuildWithData})
