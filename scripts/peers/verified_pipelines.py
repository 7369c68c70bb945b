#!/usr/bin/env python3
"""Checks that `fxopt verify OUT --against IN` proves README's pipelines on every graph of testdata.

    scripts/peers/verified_pipelines.py [--fxopt PROGRAM] [FILE...]

Each pipeline also runs followed by bucket. `opt` proves each pass when it runs; here only the last
file is compared with the first, with all rewrite rules allowed. Prints a line for each that is not
proved, then the numbers. Exits with 1 if one is not.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile

from command import command_line, program_of, testdata

LAWS = "bucket,bucketed-reduction,gathers,own-shard,added-reductions,dead-collectives"
PIPELINES = (
    "infer-phase,canonicalize,cse,remat,dce",
    "canonicalize,cse,remat,dce",
    "canonicalize,cse,sac{policy=per-op},remat,dce",
    "canonicalize,cse,sac{policy=full},remat,dce",
    "cse,dce",
    "fsdp-gathers,remat,dce",
    "fsdp-gathers,sac{policy=full},remat,dce",
    "dedup-unshards",
    "fuse-gathers,dce",
    "alias-round-trips",
    "compute-cap",
    "compute-cap{max-live=500MiB}",
)


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


def main(arguments: list[str] | None = None) -> int:
    parser = command_line(__doc__)
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE", help="graphs (default: all of testdata)")
    options = parser.parse_args(arguments)
    program = program_of(options)
    asked, proved, refused = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        after = pathlib.Path(folder) / "after.pb"
        for before in options.files or sorted(testdata()):
            for pipeline in (text + behind for text in PIPELINES for behind in ("", ",bucket")):
                asked += 1
                made = run(program, "opt", before, "-o", after, "--passes", pipeline, "--no-reproducer")
                verified = run(program, "verify", after, "--against", before, "--allow", LAWS) if made.returncode == 0 else made
                if verified.returncode == 0 and "proved, computes the same as" in verified.stdout:
                    proved += 1
                    continue
                # a pass reports unsupported input, and no file is written
                refused += made.returncode == 8
                said = (verified.stderr.splitlines() or [""])[0]
                print(
                    f"{'opt' if made.returncode else 'verify'} {verified.returncode}: {before.name}: {pipeline}: {said[:200]}",
                    flush=True,
                )
    print(f"{asked} pipelines, {proved} proved, {refused} not supported")
    return 0 if proved + refused == asked else 1


if __name__ == "__main__":
    sys.exit(main())
