"""`fxopt run` against PyTorch: the small copies of GPT-2 with seeds other than the stored one,
before and after passes. Skipped without torch, safetensors or the program."""

from __future__ import annotations

import pathlib
import subprocess
import tempfile
import unittest

from setting import TESTDATA, imports_torch, need_program

with imports_torch():
    import fxopt
    import run_step
    import torch
need_program()

TWINS = ("gpt2_flb_twin.pb.zst", "gpt2_joint_twin.pb.zst")


class RunStep(unittest.TestCase):
    def test_outputs_are_those_of_pytorch(self) -> None:
        for name in TWINS:
            for seed in (1, 987654321):
                self.assertTrue(run_step.check_file(str(TESTDATA / name), fxopt.find_fxopt(), seed, None), f"{name}, seed {seed}")

    def test_so_are_they_after_passes(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            after = str(pathlib.Path(folder) / "after.pb")
            passes = "canonicalize,cse,sac{policy=full},remat,dce"
            subprocess.run([fxopt.find_fxopt(), "opt", str(TESTDATA / TWINS[0]), "-o", after, "--passes", passes], check=True, capture_output=True)
            self.assertTrue(run_step.check_file(after, fxopt.find_fxopt(), 3, None))

    def test_the_generator_gives_the_published_words(self) -> None:
        counter = run_step.np.zeros(1, dtype=run_step.np.uint64)
        self.assertEqual([int(word) for word in run_step.philox(0, 0, counter)[0]], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8])

    def test_a_wrong_mask_is_seen(self) -> None:
        graph = fxopt.load(TESTDATA / TWINS[0])
        inputs = run_step.make_up_all(graph, str(TESTDATA / TWINS[0]), fxopt.find_fxopt(), 0)
        names = [node.name for node in graph.graph.nodes if node.target is run_step.DROPOUT]
        shapes = {node.name: node.meta["val"][1].shape for node in graph.graph.nodes if node.name in names}
        kept = {name + ".1": torch.ones(shapes[name], dtype=torch.bool) for name in names}
        dropped = {**kept, names[0] + ".1": torch.zeros(shapes[names[0]], dtype=torch.bool)}
        self.assertNotEqual(run_step.execute(graph, inputs, kept, wide=False)[0], run_step.execute(graph, inputs, dropped, wide=False)[0])


if __name__ == "__main__":
    unittest.main()
