"""Run the benchmark: `python -m benchmarks.digest`."""

from benchmarks.digest.benchmark import main

raise SystemExit(main())
