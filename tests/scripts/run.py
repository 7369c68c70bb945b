"""Runs every *_test.py beside this file with unittest, or those that a pattern names: run.py [PATTERN]. The last line is
`N passed, N failed, N skipped`."""

import pathlib
import sys
import unittest

import setting  # noqa: F401  puts the scripts on the path


def main() -> int:
    folder = str(pathlib.Path(__file__).resolve().parent)
    suite = unittest.defaultTestLoader.discover(folder, pattern=(sys.argv[1:] or ["*_test.py"])[0])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    # A failure in setUpClass or at import counts as an error without a test run, so this is floored.
    passed = max(0, result.testsRun - failed - skipped)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
