"""Run the benchmark: `python -m benchmarks.backups`."""

from benchmarks.backups.benchmark import main

main()
