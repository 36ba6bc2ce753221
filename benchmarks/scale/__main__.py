"""Run the benchmark: `python -m benchmarks.scale`."""

import sys

from benchmarks.scale.benchmark import main

sys.exit(main())
