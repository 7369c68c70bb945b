"""python -m fxopt: see fxopt.bridge."""

import sys

from fxopt.bridge import main

sys.exit(main())
