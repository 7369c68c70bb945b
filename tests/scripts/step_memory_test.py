"""scripts/peers/step_memory.py: steps of two graphs, measured by the fxopt program and run by
PyTorch. Skipped without torch or the fxopt program."""

from __future__ import annotations

import unittest

from setting import imports_torch, need_program

with imports_torch():
    import step_memory
    from fxopt_program import Fxopt
need_program()


class Pairs(unittest.TestCase):
    def test_a_step_takes_what_both_graphs_hold_in_one_process(self):
        fxopt = Fxopt(None)
        for name in step_memory.NAMES:
            with self.subTest(name=name):
                rows = list(step_memory.rows_of(fxopt, name))
                self.assertEqual([row.replay for row in rows], [row.fxopt for row in rows])
                self.assertEqual(len(rows), 1 if name in step_memory.PAIRS else 2)


if __name__ == "__main__":
    unittest.main()
