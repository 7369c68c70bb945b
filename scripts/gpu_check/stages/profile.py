"""Measurements for the lines of a device profile: memory outside the allocator, rates, short
kernels, copies."""

from __future__ import annotations

import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence

from results import Row, ratio, slug, table
from stage import ROOT, Context, Process, Stage, each_unit, profile_of_card

SHIPPED = ROOT / "ir" / "device" / "profiles"
FLOPS = {"bf16": "bfloat16", "f16": "float16", "tf32": "float32", "f32": "float32", "f64": "float64"}
# In the required order: memory outside the allocator grows with the work of the process.
KEYS = (
    "outside context", "outside modules", "constant device.memory", "constant device.sms", "constant device.capability",
    "constant device.l2", "bandwidth", "constant device.kernel", *(f"flops {name}" for name in FLOPS),
    "persistent aten.mm.default cublas", "host launch", "host to device", "device to host",
)  # fmt: skip
# Keys that are not lines of a profile, because nothing reads them yet.
REMARKS = {
    "host launch": "nanoseconds from one eager call to the next",
    "host to device": "bytes per second, pinned",
    "device to host": "bytes per second, pinned",
}


def processes(context: Context) -> list[Process]:
    return [Process(KEYS)]


def run(context: Context, keys: Sequence[str]) -> Iterator[tuple[str, Row | None]]:
    """Runs the units. Memory outside the allocator is read first in any case, because it grows
    later."""
    meter = Meter(context)
    yield from each_unit(keys, meter.row)


def used_bytes() -> int:
    """Returns the used memory of the whole card."""
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return int(subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0]) << 20


class Meter:
    """Measures the device's figures by key."""

    def __init__(self, context: Context) -> None:
        before = 0 if context.is_dry else used_bytes()
        import torch

        self.torch, self.is_dry, self.device = torch, context.is_dry, torch.device(context.device)
        self.outside: dict[str, int] = {}
        if self.is_dry:
            return
        torch.cuda.init()
        torch.empty(1, device=self.device)
        torch.cuda.synchronize()
        self.outside["context"] = used_bytes() - before - torch.cuda.memory_reserved()
        self.touch()
        self.outside["modules"] = used_bytes() - before - torch.cuda.memory_reserved() - self.outside["context"]

    def touch(self) -> None:
        """Calls the libraries that a training step loads: products, convolutions, attention,
        reductions, random numbers."""
        torch, F = self.torch, self.torch.nn.functional
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.randn(64, 64, device=self.device, dtype=dtype, requires_grad=True)
            image = torch.randn(2, 8, 16, 16, device=self.device, dtype=dtype, requires_grad=True)
            weight = torch.randn(8, 8, 3, 3, device=self.device, dtype=dtype, requires_grad=True)
            heads = torch.randn(1, 2, 64, 64, device=self.device, dtype=dtype, requires_grad=True)
            total = F.layer_norm(F.gelu(x @ x), (64,)).sum() + F.conv2d(image, weight).sum()
            total = total + F.scaled_dot_product_attention(heads, heads, heads, is_causal=True).sum()
            total = total + F.cross_entropy(x.float(), torch.zeros(64, dtype=torch.int64, device=self.device))
            total = total + F.dropout(x, 0.1).softmax(-1).sum()
            total.backward()
        torch.cuda.synchronize()

    def row(self, key: str) -> Row:
        value = self.value(key)
        return {"skipped": "needs a GPU"} if value is None else {"value": value}

    def value(self, key: str) -> int | None:
        kind, _, name = key.partition(" ")
        if kind == "outside":
            return self.outside.get(name)
        if kind == "flops":
            return self.flops(name)
        if key.startswith("constant device.") and name != "device.kernel":
            return self.property(name.removeprefix("device."))
        return {
            "bandwidth": self.bandwidth,
            "constant device.kernel": self.kernel,
            "persistent aten.mm.default cublas": self.cublas,
            "host launch": self.launch,
            "host to device": lambda: self.copies(True),
            "device to host": lambda: self.copies(False),
        }[key]()

    def property(self, name: str) -> int | None:
        if self.is_dry:
            return None
        found = self.torch.cuda.get_device_properties(self.device)
        return {
            "memory": self.torch.cuda.mem_get_info(self.device)[1],
            "sms": found.multi_processor_count,
            "capability": 10 * found.major + found.minor,
            "l2": found.L2_cache_size,
        }[name]

    # ---- times

    def seconds(self, call: Callable[[], object], runs: int = 5) -> float:
        """Returns the median time of a call, after one warmup."""
        times = []
        for number in range(runs + 1):
            self.wait()
            start = time.perf_counter()
            call()
            self.wait()
            if number:
                times.append(time.perf_counter() - start)
        return statistics.median(times)

    def wait(self) -> None:
        if not self.is_dry:
            self.torch.cuda.synchronize()

    def flops(self, name: str) -> int:
        torch, size = self.torch, 128 if self.is_dry else 4096 if name in ("f32", "f64") else 8192
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        try:
            x = torch.randn(size, size, device=self.device, dtype=getattr(torch, FLOPS[name]))
            out = torch.empty_like(x)
            return round(2 * size**3 / self.seconds(lambda: torch.mm(x, x, out=out)))
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    def bandwidth(self) -> int:
        """Returns the bytes per second of a copy, which reads and writes each byte."""
        size = 1 << (20 if self.is_dry else 30)
        source = self.torch.zeros(size, dtype=self.torch.uint8, device=self.device)
        target = self.torch.empty_like(source)
        return round(2 * size / self.seconds(lambda: target.copy_(source)))

    def kernel(self) -> int | None:
        """Returns the nanoseconds of a one-element kernel in a CUDA graph of many, without host
        launches."""
        if self.is_dry:
            return None
        torch, count = self.torch, 1000
        x = torch.zeros(1, device=self.device)
        x.add_(1)  # loads the kernel, which a capture cannot do
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded):
            for _ in range(count):
                x.add_(1)
        return round(self.seconds(recorded.replay) / count * 1e9)

    def launch(self) -> int:
        count = 100 if self.is_dry else 2000
        x = self.torch.zeros(1, device=self.device)

        def calls() -> None:
            for _ in range(count):
                x.add_(1)

        return round(self.seconds(calls) / count * 1e9)

    def copies(self, is_to_device: bool) -> int | None:
        if self.is_dry:
            return None
        size = 1 << 28
        host = self.torch.empty(size, dtype=self.torch.uint8, pin_memory=True)
        device = self.torch.empty(size, dtype=self.torch.uint8, device=self.device)
        source, target = (host, device) if is_to_device else (device, host)
        return round(size / self.seconds(lambda: target.copy_(source, non_blocking=True)))

    def cublas(self) -> int | None:
        """Returns the bytes that a cuBLAS handle keeps after its first product."""
        if self.is_dry:
            return None
        torch = self.torch
        x = torch.zeros(512, 512, device=self.device, dtype=torch.bfloat16)
        out = torch.empty_like(x)
        torch._C._cuda_clearCublasWorkspaces()
        before = torch.cuda.memory_allocated()
        torch.mm(x, x, out=out)
        return torch.cuda.memory_allocated() - before


# ---- report


def shipped(card: str) -> tuple[str, dict[str, int]]:
    """Returns name and figures of the shipped profile of this card, else of h100."""
    name = profile_of_card(card) or "h100"
    text = "\n".join((SHIPPED / file).read_text(encoding="utf-8") for file in (f"{name}.device", "torch-common.workspaces"))
    lines = re.findall(r"^((?:constant|flops|outside|persistent) \S+(?: \w+)?|bandwidth) = (\d+) ", text, re.MULTILINE)
    return name, {subject: int(value) for subject, value in lines}


def table_of(rows: Sequence[Row]) -> list[str]:
    name, figures = shipped(str(rows[0]["machine"]["card"]))
    by_key = {row["key"]: row for row in rows}
    cells = []
    for key in KEYS:
        if key in by_key:
            value = by_key[key].get("value")
            told = value if value is not None else by_key[key]["skipped"]
            cells.append([key, told, figures.get(key, "-"), ratio(value, figures.get(key)), REMARKS.get(key, "")])
    return table(["line", "measured", f"shipped {name}", "ratio", ""], cells)


def files_of(rows: Sequence[Row]) -> dict[str, str]:
    """Returns a profile of the measured values, for --device after a shipped one, whose lines it
    replaces."""
    machine = rows[0]["machine"]
    name = f"{slug(machine['card'])}-measured"
    lines = [f"# {machine['card']}, driver {machine['driver']}, torch {machine['torch']}", f"device {name}"]
    by_key = {row["key"]: row.get("value") for row in rows}
    for key in KEYS:
        value = by_key.get(key)
        if value is None:
            continue
        lines.append(f"# {key}: {value} {REMARKS[key]}" if key in REMARKS else f"{key} = {value} [measured]")
    return {".device": "\n".join(lines) + "\n"}


STAGE = Stage("profile", "the lines of a device profile, against the shipped one", 3, 60, processes, run, table_of, files_of)
