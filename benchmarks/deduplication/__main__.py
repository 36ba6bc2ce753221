"""Run the benchmark: `python -m benchmarks.deduplication`."""

from benchmarks.deduplication.benchmark import main

main()
