"""Run the benchmark: `python -m benchmarks.words`."""

from benchmarks.words.benchmark import main

main()
