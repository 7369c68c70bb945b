#!/usr/bin/env python3
"""The bridge of the package fxopt under its earlier name, as a module and as a command."""

import sys

from fxopt import bridge

if __name__ == "__main__":
    sys.exit(bridge.main())
sys.modules[__name__] = bridge
