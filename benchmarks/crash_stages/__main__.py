"""Run the benchmark: `python -m benchmarks.crash_stages`."""

from benchmarks.crash_stages.benchmark import main

main()
