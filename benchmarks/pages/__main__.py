"""Run the benchmark: `python -m benchmarks.pages`."""

from benchmarks.pages.benchmark import main

main()
