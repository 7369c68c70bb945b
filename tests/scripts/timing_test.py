"""fxopt.measure: seconds of a graph's calls, as fxopt reads them."""

from __future__ import annotations

import json
import pathlib
import tempfile
import unittest

from setting import imports_torch, needs_program

with imports_torch():
    import fxopt
    import torch
    from fxopt_program import Fxopt
    from torch.fx.experimental.proxy_tensor import make_fx


def _graph() -> tuple[object, list[object]]:
    def step(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
        parts = torch.split((x @ w.t()).relu(), 4, dim=1)
        return [torch.cat(parts[:2]), (x @ w.t()).sum()]

    inputs = [torch.randn(8, 16), torch.randn(12, 16)]
    return make_fx(step, tracing_mode="fake")(*inputs), inputs


class Measure(unittest.TestCase):
    def test_each_call_has_its_tensors_and_seconds(self) -> None:
        graph, inputs = _graph()
        told = fxopt.measure(graph, *inputs, runs=3)
        self.assertEqual((told["version"], told["device"], told["runs"]), (1, "cpu", 3))
        types = {call["target"]: call["types"] for call in told["graphs"][0]["nodes"]}
        self.assertEqual(types["aten.t.default"], "f32[12,16] -> f32[16,12]:1,16")
        self.assertEqual(types["aten.mm.default"], "f32[8,16], f32[16,12]:1,16 -> f32[8,12]")
        self.assertEqual(types["aten.split.Tensor"], "f32[8,12] -> f32[8,4]:12,1, f32[8,4]:12,1, f32[8,4]:12,1")
        self.assertEqual(types["aten.cat.default"], "f32[8,4]:12,1, f32[8,4]:12,1 -> f32[16,4]")
        self.assertEqual(types["aten.sum.default"], "f32[8,12] -> f32[]")
        self.assertTrue(all(call["seconds"] > 0 for call in told["graphs"][0]["nodes"]))

    @needs_program
    def test_fxopt_finds_every_call_again(self) -> None:
        graph, inputs = _graph()
        with tempfile.TemporaryDirectory() as folder:
            path, times = (str(pathlib.Path(folder) / name) for name in ("graph.pb", "times.json"))
            fxopt.save(graph, path)
            told = fxopt.measure(graph, *inputs, file=times)
            self.assertEqual(json.loads(pathlib.Path(times).read_text(encoding="utf-8")), told)
            work = Fxopt(None).run("diff", path, path, "--measurement", times)["graphs"][0]["after"]["work"]
        self.assertEqual(list(work["kernels"]), ["free", "measured"])
        self.assertEqual(work["kernels"]["measured"], 5)  # two mm, relu, cat, sum
        calls = told["graphs"][0]["nodes"]
        kernels = [c["seconds"] for c in calls if not c["target"].startswith(("aten.t.", "aten.split.", "operator."))]
        self.assertAlmostEqual(work["seconds"], sum(kernels))


if __name__ == "__main__":
    unittest.main()
