"""Copies scripts, graphs and the program for another machine that has Python and torch."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

from stage import ROOT

# Paths in the repository. Tests and files of other tools are not copied.
PARTS = (
    "scripts/gpu_check.sh", "scripts/gpu_check", "scripts/fxopt", "scripts/peers", "scripts/traces",
    "scripts/trace_gpu_free.py", "testdata/gpu", "ir/device/profiles",
    "testdata/gpt2_flb.pb.zst", "testdata/gpt2_flb_twin.pb.zst", "testdata/gpt2_joint_twin.pb.zst",
)  # fmt: skip
LEFT_OUT = ("__pycache__", "differential_parts", "edit_parts", "allocator", "*.pyc", "bin")


def make_pack(folder: pathlib.Path, program: str) -> str:
    """Fills the folder and returns a line with its size. Raises FileExistsError if it is not
    empty."""
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty")
    for part in PARTS:
        source, target = ROOT / part, folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(*LEFT_OUT))
        else:
            shutil.copy2(source, target)
    (folder / "bin").mkdir()
    packed = folder / "bin" / "fxopt"
    strip = shutil.which("strip")
    if strip is None or subprocess.run([strip, "-o", str(packed), program], capture_output=True).returncode != 0:
        shutil.copy2(program, packed)
    plugin = pathlib.Path(program).parent / "libfxopt_cuda.so"
    if plugin.exists():
        shutil.copy2(plugin, folder / "bin" / plugin.name)
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    lacking = "" if plugin.exists() else "; without the CUDA plugin, which the stages bits and run need"
    return f"{folder}: {len(files)} files, {size / 1e6:.1f} MB{lacking}; run there: scripts/gpu_check.sh --out FILE"
