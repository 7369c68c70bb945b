"""Process groups that a pass added are created by load() on every rank. fuse-gathers replaces two
gathers over a 2 x 2 mesh by one, on four processes. Skipped without torch or the fxopt program."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from setting import SCRIPTS, imports_torch, need_program

with imports_torch():
    import torch
    import torch.distributed as dist
    from fxopt import bridge
    from fxopt.tool import find_fxopt
need_program()

RANKS = 4
SHARD = (2, 3)


def text_for(rank: int) -> str:
    """dp, then tp: the fused gather needs the ranks in column order of the mesh, which no group
    has."""
    dp, tp = rank // 2, rank % 2
    return f"""process_group {{uid="dp", ranks=[{tp}, {tp + 2}], mesh="mesh", mesh_dims=["dp"]}}
process_group {{uid="tp", ranks=[{2 * dp}, {2 * dp + 1}], mesh="mesh", mesh_dims=["tp"]}}
device_mesh {{name="mesh", device_type="cpu", shape=[2, 2], dim_names=["dp", "tp"], ranks=[0, 1, 2, 3], coordinate=[{dp}, {tp}], groups=["dp", "tp"]}}
rank {{rank={rank}, world_size=4}}
graph @main {{kind=inference}} {{
  %x: f32[2, 3]@cpu = placeholder() {{input={{role=parameter}}}}
  %a: f32[4, 3]@cpu = _c10d_functional.all_gather_into_tensor.default(%x, 2, "dp")
  %w: f32[4, 3]@cpu = _c10d_functional.wait_tensor.default(%a)
  %b: f32[8, 3]@cpu = _c10d_functional.all_gather_into_tensor.default(%w, 2, "tp")
  %v: f32[8, 3]@cpu = _c10d_functional.wait_tensor.default(%b)
  return (%v,)
}}
"""


def run_rank(rank: int, folder: pathlib.Path) -> None:
    """Checks that the fused gather of this rank returns the shards in the order that the mesh
    demands."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS)
    module = bridge.load(folder / f"fused{rank}.pb")
    calls = [node for node in module.graph.nodes if "all_gather" in str(node.target)]
    shards = [torch.full(SHARD, float(each)) for each in range(RANKS)]
    (result,) = module(shards[rank])
    expected = torch.cat([shards[each] for each in (0, 2, 1, 3)])
    dist.destroy_process_group()
    if len(calls) != 1 or not torch.equal(result, expected):
        raise AssertionError(f"rank {rank}: {len(calls)} gathers, {result[:, 0].tolist()}")


class CreatedGroups(unittest.TestCase):
    def test_every_rank_makes_them(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for rank in range(RANKS):
                (folder / f"{rank}.fxg").write_text(text_for(rank))
                done = subprocess.run(
                    [find_fxopt(None), "opt", folder / f"{rank}.fxg", "-o", folder / f"fused{rank}.pb", "--passes", "fuse-gathers"],
                    capture_output=True,
                    text=True,
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("groups-created", done.stderr)
            environment = os.environ | {"PYTHONPATH": f"{SCRIPTS}:{pathlib.Path(__file__).parent}", "OMP_NUM_THREADS": "1"}
            workers = [
                subprocess.Popen(
                    [sys.executable, __file__, str(rank), name], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                )
                for rank in range(RANKS)
            ]
            for rank, worker in enumerate(workers):
                out, _ = worker.communicate(timeout=300)
                self.assertEqual(worker.returncode, 0, f"rank {rank}: {out[-2000:]}")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1].isdigit():
        run_rank(int(sys.argv[1]), pathlib.Path(sys.argv[2]))
    else:
        unittest.main()
