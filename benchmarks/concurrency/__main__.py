"""Run the benchmark: `python -m benchmarks.concurrency`."""

from benchmarks.concurrency.benchmark import main

raise SystemExit(main())
