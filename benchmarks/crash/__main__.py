"""Run the benchmark: `python -m benchmarks.crash`."""

from benchmarks.crash.benchmark import main

main()
