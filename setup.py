"""What pyproject.toml cannot say: the compiled kernels, and the data folders inside a wheel.

The kernels are optional: without Cython or a C compiler the package installs all the same and
runs their plain-Python twins. SPMRL_BENCH_KERNELS=chart._spans,nn.kernels._decoder in the
environment of ``python setup.py build_ext --inplace`` compiles these kernels alone. Two other
switches are for debugging; what they build is much slower to run:

- SPMRL_BENCH_BOUNDS_CHECKS=1 checks every index of an array.
- SPMRL_BENCH_SANITIZE=address,undefined has the compiler watch every read and write of memory, and
  what C leaves undefined. The first finding ends the program. Python has to be started with the
  compiler's libraries loaded first. Work in a copy of the checkout, lest the kernels in use be
  replaced::

      SPMRL_BENCH_SANITIZE=address,undefined python setup.py build_ext --inplace
      LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)" \
          ASAN_OPTIONS=detect_leaks=0 python -m pytest tests/chart

  ``tests/reliability/test_sanitizers.py`` does both.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError, LinkError

ROOT = Path(__file__).resolve().parent
SOURCES = sorted(path.relative_to(ROOT) for path in (ROOT / "spmrl_bench").rglob("*.pyx"))
KERNELS = {".".join(path.with_suffix("").parts[1:]): str(path) for path in SOURCES}
HEADERS = sorted(
    str(path.relative_to(ROOT))
    for ending in ("h", "pxi")
    for path in (ROOT / "spmrl_bench").rglob(f"*.{ending}")
)
DATA_FOLDERS = (
    *("recipes", "treebanks", "evalb", "published", "systems", "encoders"),
    "results/shipped",
)
SWITCHES = ("SPMRL_BENCH_BOUNDS_CHECKS", "SPMRL_BENCH_SANITIZE")


class BuildKernels(build_ext):
    """Compiles with full optimisation, but for no particular processor.

    Nothing may reorder the arithmetic: the kernels return the bits of their Python twins.
    """

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = os.cpu_count()
        switches = repr([os.environ.get(name, "0") or "0" for name in SWITCHES])
        # File times do not show that a switch has moved.
        noted = ROOT / "build" / "switches"
        if not noted.exists() or noted.read_text(encoding="utf-8") != switches:
            self.force = True
            noted.parent.mkdir(exist_ok=True)
            noted.write_text(switches, encoding="utf-8")

    def build_extensions(self) -> None:
        checks = os.environ.get("SPMRL_BENCH_BOUNDS_CHECKS", "0") not in ("", "0")
        directives = {
            "language_level": 3,
            "boundscheck": checks,
            "initializedcheck": checks,
            "wraparound": False,
        }
        # One process for each kernel; the compiler has threads of its own below.
        translated = cythonize(
            self.extensions,
            nthreads=self.parallel,
            force=self.force,
            quiet=True,
            compiler_directives=directives,
        )
        for ext, found in zip(self.extensions, translated, strict=True):
            ext.sources = found.sources
        flags = self._openmp_flags()
        optimised = ["/O2"] if self.compiler.compiler_type == "msvc" else ["-O3"]
        sanitizers = os.environ.get("SPMRL_BENCH_SANITIZE", "")
        watch = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"] if sanitizers else []
        if watch:
            optimised = ["-O1", "-g", "-fno-omit-frame-pointer", *watch]
        for ext in self.extensions:
            ext.extra_compile_args, ext.extra_link_args = [*optimised, *flags], [*watch, *flags]
        super().build_extensions()

    def _openmp_flags(self) -> list[str]:
        """The flags that compile and link OpenMP; none where a small program does not build."""
        flags = ["/openmp"] if self.compiler.compiler_type == "msvc" else ["-fopenmp"]
        program = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
        with TemporaryDirectory() as folder:
            source = Path(folder) / "attempt.c"
            source.write_text(program, encoding="ascii")
            try:
                objects = self.compiler.compile([str(source)], folder, extra_postargs=flags)
                self.compiler.link_executable(objects, "attempt", folder, extra_postargs=flags)
            except (CompileError, LinkError):
                print("no OpenMP here: the kernels work with one thread")
                return []
        return flags


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
        copies = [] if self.editable_mode else self._data_copies()
        return outputs + [str(target) for _, target in copies]

    def _data_copies(self) -> list[tuple[Path, Path]]:
        data = Path(self.build_lib) / "spmrl_bench" / "_data"
        return [
            (path, data / path.relative_to(ROOT))
            for folder in DATA_FOLDERS
            for path in sorted((ROOT / folder).rglob("*"))
            if path.is_file()
        ]


def chosen_kernels() -> tuple[str, ...]:
    """All kernels, or those that the environment names."""
    named = tuple(filter(None, os.environ.get("SPMRL_BENCH_KERNELS", "").split(",")))
    if unknown := set(named) - KERNELS.keys():
        known = ", ".join(KERNELS)
        raise SystemExit(f"SPMRL_BENCH_KERNELS: no {', '.join(sorted(unknown))}, but {known}")
    return named or tuple(KERNELS)


setup(
    cmdclass={"build_ext": BuildKernels, "build_py": BuildWithData},
    ext_modules=[
        Extension(
            f"spmrl_bench.{name}",
            [KERNELS[name]],
            depends=HEADERS,
            optional=True,
        )
        for name in chosen_kernels()
    ],
)
