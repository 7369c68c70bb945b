"""The advice of `fxopt run --dry-run` about operators without a row, tried in PyTorch. Skipped
without torch or the fxopt program."""

from __future__ import annotations

import unittest

from setting import TESTDATA, imports_torch, need_program

with imports_torch():
    import fxopt
    import remedies
    import torchgen  # noqa: F401
need_program()


class Remedies(unittest.TestCase):
    def test_each_remedy_of_two_graphs_holds(self) -> None:
        cuda = remedies.without_cuda()
        for name in ("resnet50_joint_twin.pb.zst", "gpu/t5_joint_small.pb.zst"):
            self.assertEqual(remedies.check_file(str(TESTDATA / name), fxopt.find_fxopt(), cuda), 0, name)

    def test_a_remedy_that_does_not_hold_is_seen(self) -> None:
        graph = fxopt.load(TESTDATA / "resnet50_joint_twin.pb.zst")
        node = next(node for node in graph.graph.nodes if str(node.target) == "aten.mm.default")
        self.assertFalse(remedies.try_remedy(node, "decompose")[0])
        self.assertFalse(remedies.check_kernel(node.target, "none", False, set()))


if __name__ == "__main__":
    unittest.main()
