"""Run the benchmark: `python -m benchmarks.times`."""

from benchmarks.times.benchmark import main

main()
