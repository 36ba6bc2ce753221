"""Run the benchmark: `python -m benchmarks.latency`."""

from benchmarks.latency.benchmark import main

main()
