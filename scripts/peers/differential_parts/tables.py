"""Counts of a campaign, by pass and by feature."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from differential_parts.campaign import Outcome, Run
from differential_parts.observe import kind_of

# Each must be in at least 3 % of the programs.
WANTED = (
    "in-place on a view", "size change", "set_", "resize_", "out=", "mutated input", "output aliases an input",
    "outputs alias each other", "random", "higher-order", "checkpoint", "other sizes", "collective", "forward-loss-backward",
    "joint", "tags with marks", "tags without marks", "write in backward", "fused cross entropy", "dynamo", "call_method",
    "getitem of a tensor", "pre_dispatch", "make_fx real", "torch.export", "AOTAutograd", "attributes", "no values",
    "custom operator", "failing assertion", "read by argument", "messages", "nested backward",
)  # fmt: skip


def line(outcome: Outcome, run: Run) -> str:
    """One disagreement in one line."""
    how = " by apply" if run.by_apply else ""
    shown = "; ".join(run.differences[:3]) + (f"; {len(run.differences) - 3} more" if len(run.differences) > 3 else "")
    verdict = "WRONG" if run.differences else "ALARM"
    shown = shown or "stopped by the proof, but equal when executed without it"
    return f"{verdict} seed {outcome.seed} [{', '.join(outcome.features)}] --passes '{run.passes}'{how}: {shown}"


class Tables:
    """Statistics of the outcomes so far."""

    def __init__(self, passes: Sequence[str], ignored: Collection[str] = ()) -> None:
        """ignored: kinds of differences (observe.kind_of) that are counted, but not called
        wrong."""
        self.passes = passes
        self.ignored = ignored
        self.programs = self.runs = self.changed = self.recomputed = self.wrong = self.stopped = self.alarms = 0
        self.kinds: Counter[str] = Counter()  # wrong runs by their first difference
        self.skipped: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.by_pass: dict[str, Counter[str]] = defaultdict(Counter)
        self.by_cut: dict[str, Counter[str]] = defaultdict(Counter)
        self.by_feature: dict[str, Counter[str]] = defaultdict(Counter)
        self.lines: list[str] = []

    def is_wrong(self, run: Run) -> bool:
        return any(kind_of(difference) not in self.ignored for difference in run.differences)

    def add(self, outcome: Outcome) -> None:
        if outcome.skipped is not None:
            self.skipped[outcome.skipped] += 1
            return
        self.programs += 1
        features = {*outcome.features, f"family {outcome.family}"}
        for feature in features:
            self.by_feature[feature]["programs"] += 1
        for run in outcome.runs:
            self._add_run(outcome, run, features)

    def _add_run(self, outcome: Outcome, run: Run, features: set[str]) -> None:
        is_wrong = self.is_wrong(run)
        self.runs += 1
        self.changed += run.has_changed
        self.recomputed += run.recomputed > 0
        self.wrong += is_wrong
        self.stopped += is_wrong and run.is_stopped
        self.alarms += run.is_stopped and not run.differences
        self.refused[run.refused or ""] += 1
        if run.differences:
            self.kinds[kind_of(run.differences[0])] += 1
        if is_wrong or run.is_stopped:
            self.lines.append(line(outcome, run))
        for feature in features:
            self.by_feature[feature].update({"runs": 1, "changed": run.has_changed, "wrong": is_wrong})
        row = {"runs": 1, "wrong": is_wrong, "refused": run.refused is not None}
        for name in {re.match(r"[\w-]+", item)[0] for item in re.sub(r"\{[^}]*\}", "", run.passes).split(",")}:
            self.by_pass[name].update({**row, "changed": run.changed.get(name, False)})
        for cut in set(re.findall(r"partition(?:\{[^}]*\})?", run.passes)):
            self.by_cut[cut].update({**row, "changed": run.changed.get("partition", False)})

    def json(self) -> dict[str, object]:
        return {
            "programs": self.programs,
            "runs": self.runs,
            "changed": self.changed,
            "recomputed": self.recomputed,
            "wrong": self.wrong,
            "stopped": self.stopped,
            "alarms": self.alarms,
            "kinds": dict(self.kinds),
            "skipped": dict(self.skipped),
            "refused": {code: count for code, count in self.refused.items() if code},
            "passes": {name: dict(row) for name, row in (self.by_pass | self.by_cut).items()},
            "features": {name: dict(row) for name, row in self.by_feature.items()},
            "disagreements": self.lines,
        }

    def text(self, seconds: float, jobs: int) -> str:
        rate = self.runs / seconds if seconds else 0
        kinds = ", ".join(
            f"{count} in {kind}{', ignored' if kind in self.ignored else ''}" for kind, count in self.kinds.most_common()
        )
        lines = [
            f"{self.wrong} wrong of {self.runs} runs of {self.programs} programs" + (f" ({kinds})" if kinds else ""),
            f"the proof stopped {self.stopped} of the wrong ones, and {self.alarms} that agree",
            f"{self.changed} runs changed the graph, {self.recomputed} carried out recompute tags",
            f"{seconds:.0f} s, {rate:.1f} runs/s in {jobs} {'process' if jobs == 1 else 'processes'}",
            "",
            f"{'pass':56}{'runs':>8}{'changed':>9}{'refused':>9}{'wrong':>7}",
        ]
        for name, row in [*((name, self.by_pass[name]) for name in self.passes), *sorted(self.by_cut.items())]:
            lines.append(f"{name:56}{row['runs']:8}{row['changed']:9}{row['refused']:9}{row['wrong']:7}")
        lines += ["", f"{'feature':36}{'programs':>9}{'share':>8}{'runs':>8}{'changed':>9}{'wrong':>7}"]
        others = sorted(set(self.by_feature) - set(WANTED))
        lines += [self._feature(name) for name in [*WANTED, *others]]
        for title, counts in (("refused runs", self.refused), ("skipped seeds", self.skipped)):
            rows = [f"  {count:6}  {name}" for name, count in counts.most_common() if name]
            lines += ["", f"{title}: {sum(count for name, count in counts.items() if name)}", *rows]
        return "\n".join(lines)

    def _feature(self, name: str) -> str:
        row = self.by_feature[name]
        share = row["programs"] / self.programs if self.programs else 0
        few = "  below 3 %" if name in WANTED and share < 0.03 else ""
        return f"{name:36}{row['programs']:9}{share:8.1%}{row['runs']:8}{row['changed']:9}{row['wrong']:7}{few}"
