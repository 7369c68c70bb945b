"""A pytest plugin for torchtitan's graph_trainer tests. It replaces each pass and reports the
results.

    python -m pytest -p titan_plugin --titan-mode fxopt --titan-report report.json --pyargs
    torchtitan...tests.test_passes

--titan-mode titan keeps the passes, control replaces them by passes that change nothing, fxopt by
fxopt. The report is {"mode", "collected": number of tests per class, "tests": {id: {"class",
"outcome", "message", "passes": called passes, "trimmed": malformed calls}}}.
"""

from __future__ import annotations

import functools
import importlib
import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import stand_ins
import torch
from torch.fx import GraphModule

MODES = ("titan", "control", "fxopt")
_IMPORTERS = ("passes", "memory_policy", "graph_pp.graph_builder")  # import passes by name
_POLICIES = {
    "memory_policy._make_default_memory_policy": stand_ins.sac_pipeline,
    "memory_policy._make_full_memory_policy": lambda _: "sac{policy=full}",
}


class Report:
    """The passes that each test called, and its outcome."""

    def __init__(self) -> None:
        self.collected: dict[str, int] = {}
        self.tests: dict[str, dict[str, Any]] = {}
        self.current = ""

    def entry(self, node_id: str) -> dict[str, Any]:
        empty = {"outcome": "", "message": "", "passes": [], "trimmed": []}
        return self.tests.setdefault(node_id, empty)

    def called(self, name: str) -> None:
        passes = self.entry(self.current)["passes"]
        if name not in passes:
            passes.append(name)


class TitanPlugin:
    """Replaces the passes on construction, before any test module is imported."""

    def __init__(self, mode: str, path: pathlib.Path) -> None:
        self.mode = mode
        self.path = path
        self.report = Report()
        self.is_inside = False  # a pass that calls another counts as one call
        for module in _IMPORTERS:
            importlib.import_module(f"{stand_ins.PACKAGE}.{module}")
        for name, pipeline in stand_ins.PIPELINES.items():
            self.swap(name, functools.partial(stand_ins.run_fxopt, pipeline=pipeline))
        self.swap(stand_ins.TAGGING, _tag)
        for name, nothing in stand_ins.ABSENT.items():
            self.swap(name, None, nothing)
        for name, pipeline_of in _POLICIES.items():
            _label_policies(name, pipeline_of)

    def swap(
        self,
        name: str,
        by_fxopt: Callable[..., object] | None,
        nothing: Callable[[GraphModule], object] = lambda graph_module: graph_module,
    ) -> None:
        original = stand_ins.find(name)

        @functools.wraps(original)
        def stand_in(graph_module: GraphModule, *args: Any, **kwargs: Any) -> object:
            if self.is_inside:
                return original(graph_module, *args, **kwargs)
            self.report.called(name)
            self.is_inside = True
            try:
                if self.mode == "titan" or (self.mode == "fxopt" and by_fxopt is None):
                    return original(graph_module, *args, **kwargs)
                if self.mode == "control":
                    return nothing(graph_module)
                with stand_ins.well_formed(graph_module) as trimmed:
                    self.report.entry(self.report.current)["trimmed"] += trimmed
                    return by_fxopt(graph_module, **_without_inputs(kwargs))
            finally:
                self.is_inside = False

        stand_ins.replace(original, stand_in)

    # ---- hooks

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            self.report.collected[_class_of(item)] = self.report.collected.get(_class_of(item), 0) + 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.report.current = item.nodeid
        self.report.entry(item.nodeid)["class"] = _class_of(item)
        if not torch.cuda.is_available() and hasattr(item.cls, "_make_fake_val"):
            item.cls._make_fake_val = _cpu_value

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        entry = self.report.entry(report.nodeid)
        if report.outcome == "failed" or (report.when == "call" and entry["outcome"] != "failed"):
            entry["outcome"] = report.outcome
        if report.outcome == "skipped":
            entry["outcome"] = "skipped"
        if report.outcome == "failed":
            entry["message"] = str(getattr(report.longrepr, "reprcrash", report.longrepr)).strip()[-400:]

    def pytest_sessionfinish(self) -> None:
        result = {"mode": self.mode, "collected": self.report.collected, "tests": self.report.tests}
        self.path.write_text(json.dumps(result, indent=1) + "\n")


def _class_of(item: pytest.Item) -> str:
    return item.cls.__name__ if item.cls else ""


def _tag(graph_module: GraphModule, *, policy_fn: Any = None, force_save_nodes: Any = None) -> GraphModule:
    return stand_ins.tag(graph_module, policy_fn, force_save_nodes)


def _without_inputs(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if name != "example_inputs"}


def _label_policies(name: str, pipeline_of: Callable[[Any], str]) -> None:
    """Makes the factory `name` record the equivalent sac pipeline on each policy."""
    original = stand_ins.find(name)

    @functools.wraps(original)
    def labelled(*args: Any) -> Callable[..., object]:
        policy = original(*args)
        policy.pipeline = pipeline_of(args[0] if args else None)
        return policy

    stand_ins.replace(original, labelled)


def _cpu_value(_self: object, shape: Any = (64, 64), dtype: Any = torch.float32, device: str = "cpu") -> torch.Tensor:
    """Replaces a GPU value of the offload tests. They run nothing on a GPU."""
    del device
    return torch.empty(shape, dtype=dtype)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("titan")
    group.addoption("--titan-mode", choices=MODES, default="titan")
    group.addoption("--titan-report", type=pathlib.Path, required=True)


def pytest_configure(config: pytest.Config) -> None:
    plugin = TitanPlugin(config.getoption("--titan-mode"), config.getoption("--titan-report"))
    config.pluginmanager.register(plugin, "titan")
