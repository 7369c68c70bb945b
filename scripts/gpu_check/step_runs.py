"""`fxopt run`, for stages."""

from __future__ import annotations

import json
import pathlib
import subprocess

from fxopt_program import Fxopt

PASSES = {
    "per-op": "canonicalize,cse,sac,remat,dce",
    "full": "canonicalize,cse,sac{policy=full},remat,dce",
}


def prepared(fxopt: Fxopt, path: pathlib.Path, variant: str, folder: pathlib.Path) -> pathlib.Path:
    """Returns the graph's path, or the path in `folder` of the graph after the variant's passes."""
    if variant not in PASSES:
        return path
    optimized = folder / f"{path.name.split('.')[0]}_{variant}.pb"
    if not optimized.exists():
        fxopt.opt(path, optimized, PASSES[variant], "--no-reproducer")
    return optimized


def run_step(program: str, path: pathlib.Path, *arguments: object) -> dict:
    """Returns the result of `fxopt run --json` on random inputs. Raises RuntimeError with the
    program's errors if it fails."""
    command = [program, "run", str(path), "--fill", "random", "--seed", "1", *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(done.stderr[-500:])
    told = json.loads(done.stdout)
    if done.returncode not in (0, 4):
        raise RuntimeError("; ".join(f"{error['code']}: {error['message']}" for error in told["errors"]))
    return told["result"]
