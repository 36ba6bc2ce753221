"""Run the benchmark: `python -m benchmarks.secrets`."""

from benchmarks.secrets.benchmark import main

main()
