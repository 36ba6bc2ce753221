"""Run the benchmark: `python -m benchmarks.digest`."""

import sys

from benchmarks.digest.benchmark import main

sys.exit(main())
