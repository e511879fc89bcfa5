"""``python -m spmrl_bench`` is the command ``spmrl-bench``."""

from spmrl_bench.cli import main

main()
