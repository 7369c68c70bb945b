#!/usr/bin/env python3
"""Times training steps by `fxopt run` in exact mode and by PyTorch eager, with as many threads.

    scripts/peers/run_speed.py [--fxopt PROGRAM] [--threads N] [--repeat N]

The graphs are the twin of GPT-2 (2 layers, width 32), and GPT-2 with 6 layers (width 768, batch 2,
length 256): forward, loss and backward, executed node by node. A product of two matrices of 1024 x
1024 is compared with numpy's OpenBLAS. Prints medians; PyTorch's include the time of its
interpreter. Needs torch, transformers, numpy and safetensors.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

from command import ROOT, command_line, program_of

PRODUCT = """fxg 0
graph @product {
  %a: f32[1024, 1024] = placeholder()
  %b: f32[1024, 1024] = placeholder()
  %c: f32[1024, 1024] = aten.mm.default(%a, %b)
  return (%c,)
}
"""


def ours(program: str, path: str, threads: int, repeat: int) -> float:
    command = [program, "run", path, "--fill", "random", "--threads", str(threads), "--warmup", "2", "--repeat", str(repeat), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return statistics.median(json.loads(done.stdout)["result"]["seconds"])


def median_of(call: object, repeat: int) -> float:
    seconds = []
    for i in range(repeat + 2):
        start = time.perf_counter()
        call()
        if i >= 2:
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def theirs(path: str, program: str, repeat: int) -> float:
    import fxopt
    import run_step
    import torch

    graph = fxopt.load(path, fxopt=program)
    inputs = run_step.make_up_all(graph, path, program, 0)
    with torch.no_grad():
        return median_of(lambda: torch.fx.Interpreter(graph).run(*inputs), repeat)


def six_layers(folder: str, program: str) -> str:
    import fxopt
    import traces
    from traces import gpt2, routes

    size = dataclasses.replace(gpt2.FULL, device="cpu", layers=6, batch=2, length=256)
    graph, told = gpt2.trace(size, dict((suffix, route) for suffix, route, _ in routes.FORMS)["flb"])
    traces.number_identities(graph)
    path = str(pathlib.Path(folder) / "gpt2_six_layers.pb")
    fxopt.save(graph, path, fxopt=program, **told)
    traces.close()
    return path


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(args.threads)
    import numpy as np
    import torch

    torch.set_num_threads(args.threads)
    program = program_of(args)
    with tempfile.TemporaryDirectory() as folder:
        product = pathlib.Path(folder) / "product.fxg"
        product.write_text(PRODUCT)
        a = np.random.default_rng(0).random((1024, 1024), dtype=np.float32)
        rows = [("product of 1024 x 1024", ours(program, str(product), args.threads, args.repeat), median_of(lambda: a @ a, args.repeat))]
        twin = str(ROOT / "testdata" / "gpt2_flb_twin.pb.zst")
        for name, path in (("twin of GPT-2", twin), ("GPT-2, 6 layers", six_layers(folder, program))):
            rows.append((name, ours(program, path, args.threads, args.repeat), theirs(path, program, args.repeat)))
    for name, mine, other in rows:
        print(f"{name}, {args.threads} threads: fxopt {mine * 1e3:.2f} ms, {'OpenBLAS' if 'product' in name else 'PyTorch'} {other * 1e3:.2f} ms: {mine / other:.2f} times")


if __name__ == "__main__":
    main()
