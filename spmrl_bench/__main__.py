"""``python -m spmrl_bench`` is the command ``spmrl-bench``."""

from spmrl_bench.entry import main

main()
