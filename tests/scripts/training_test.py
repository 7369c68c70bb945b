"""Models that write state while they train, compiled by `backend="fxopt"` with five lists of passes:
losses and state equal those of aot_eager, bit by bit. Skipped without torch or the fxopt program."""

from __future__ import annotations

import unittest
import warnings

from setting import imports_torch, need_program

with imports_torch():
    import torch
    import training_loops
    import unusual_models
need_program()


class Training(unittest.TestCase):
    def test_models_that_write_state_train_as_aot_eager(self):
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        for kind in unusual_models.KINDS:
            expected = training_loops.run(kind, training_loops.EAGER, 2, dynamic=False)
            for way in training_loops.OPTIONS_OF_UNUSUAL:
                with self.subTest(f"{kind.__name__}, {way}"):
                    found = training_loops.run(kind, way, 2, dynamic=False)
                    self.assertEqual(found.difference(expected), "")


if __name__ == "__main__":
    unittest.main()
