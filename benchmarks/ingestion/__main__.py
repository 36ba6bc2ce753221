"""Run the benchmark: `python -m benchmarks.ingestion`."""

from benchmarks.ingestion.benchmark import main

raise SystemExit(main())
