"""Run the benchmark: `python -m benchmarks.concurrency`."""

import sys

from benchmarks.concurrency.benchmark import main

sys.exit(main())
