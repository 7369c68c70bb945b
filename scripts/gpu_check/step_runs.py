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
    """The graph itself, or a file in `folder` that the variant's passes make of it."""
    if variant not in PASSES:
        return path
    optimized = folder / f"{path.name.split('.')[0]}_{variant}.pb"
    if not optimized.exists():
        fxopt.opt(path, optimized, PASSES[variant], "--no-reproducer")
    return optimized


def run_step(program: str, path: pathlib.Path, *arguments: object) -> dict:
    """The result of `fxopt run --json`, with made up inputs. RuntimeError with what it said where it fails."""
    command = [program, "run", str(path), "--fill", "random", "--seed", "1", *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(done.stderr[-500:])
    told = json.loads(done.stdout)
    if done.returncode not in (0, 4):
        raise RuntimeError("; ".join(f"{error['code']}: {error['message']}" for error in told["errors"]))
    return told["result"]
