#!/usr/bin/env python3
"""Compares fxopt's estimated collective times on an H100 with those of PyTorch's Inductor.

  collective_times.py [--fxopt PROGRAM]

Both get the size that NCCL uses: for an all-gather the total of all ranks, for a reduce-scatter the
result of one rank. PyTorch's model knows the size of a group, assumes that a group of more than
eight ranks fills nodes of eight, and gives a node one 400 Gb/s adapter. fxopt's profile has eight
adapters, so it is asked a second time with one, and this time is checked. PyTorch treats all-to-all
as an all-reduce: that ratio is printed, not checked. Exits with 1 if the time of a payload of at
least 1 MiB is not within a factor of 2.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile
from unittest import mock

from command import command_line
from fxopt_program import Fxopt
from torch._inductor import comm_analysis
from torch._inductor.comm_analysis import NCCL_COLL, NVIDIA_GPU_TYPE

_KINDS = {
    "all-gather": (NCCL_COLL.ALL_GATHER, '_c10d_functional.all_gather_into_tensor.default(%x, {ranks}, "g")'),
    "reduce-scatter": (NCCL_COLL.REDUCE_SCATTER, '_c10d_functional.reduce_scatter_tensor.default(%x, "sum", {ranks}, "g")'),
    "all-reduce": (NCCL_COLL.ALL_REDUCE, '_c10d_functional.all_reduce.default(%x, "sum", "g")'),
    "all-to-all": (NCCL_COLL.ALL_TO_ALL, '_c10d_functional.all_to_all_single.default(%x, None, None, "g")'),
}
_SIZES = [1 << power for power in (14, 20, 24, 28, 30)]
_RANKS = (2, 8, 16, 64)
_ONE_ADAPTER = "constant link.network.bandwidth = 50000000000 // 8\n"


def _graph(kind: str, ranks: int, size: int) -> str:
    call = _KINDS[kind][1].format(ranks=ranks)
    given = size // ranks if kind == "all-gather" else size
    made = size if kind == "all-gather" else size // ranks if kind == "reduce-scatter" else size
    return (
        f'process_group {{uid="g", ranks={list(range(ranks))}}}\n'
        "graph @main {\n"
        f"  %x: u8[{given}] = placeholder()\n"
        f"  %c: u8[{made}] = {call}\n"
        "  return (%c,)\n}\n"
    )


def main() -> int:
    parser = command_line(__doc__)
    program = Fxopt(parser.parse_args().fxopt)
    far = 0
    print("kind            ranks        bytes   fxopt, us   one adapter   torch, us   ratio")
    with mock.patch.object(comm_analysis, "get_gpu_type", return_value=NVIDIA_GPU_TYPE.HOPPER):
        for kind, (coll, _) in _KINDS.items():
            for ranks in _RANKS:
                for size in _SIZES:
                    full, ours = _ours(program, kind, ranks, size)
                    theirs = comm_analysis.estimate_nccl_collective_runtime_impl(size, ranks, coll) * 1e3
                    is_far = size >= 1 << 20 and kind != "all-to-all" and not 0.5 <= ours / theirs <= 2
                    far += is_far
                    note = "  far" if is_far else ""
                    print(f"{kind:14} {ranks:6} {size:12} {full:11.1f} {ours:13.1f} {theirs:11.1f} {ours / theirs:7.2f}{note}")
    print(f"{far} of the checked times are not within a factor of 2")
    return 1 if far else 0


def _ours(program: Fxopt, kind: str, ranks: int, size: int) -> list[float]:
    """Microseconds with the profile as it is, and with one adapter a node."""
    with tempfile.TemporaryDirectory() as folder:
        path, one = pathlib.Path(folder) / "graph.fxg", pathlib.Path(folder) / "one.device"
        path.write_text(_graph(kind, ranks, size), encoding="utf-8")
        one.write_text(_ONE_ADAPTER, encoding="utf-8")
        told = [program.run("diff", str(path), str(path), "--device", device) for device in ("h100", f"h100,{one}")]
    return [each["graphs"][0]["after"]["work"]["collective_seconds"] * 1e6 for each in told]


if __name__ == "__main__":
    sys.exit(main())
