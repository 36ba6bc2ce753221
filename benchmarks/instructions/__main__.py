"""Run the benchmark: `python -m benchmarks.instructions`."""

import sys

from benchmarks.instructions.benchmark import main

sys.exit(main())
