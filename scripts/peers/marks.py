#!/usr/bin/env python3
"""Checks that partition{mode=save-all} saves the values that a first partition marks.

    scripts/peers/marks.py [--fxopt PROGRAM] [--first PASSES] [--jobs N] [--quick] [GRAPH...]
    scripts/peers/marks.py --count [--fxopt PROGRAM] [GRAPH...]

GRAPH: joint graphs (default: llama8b_joint, gpt2_joint and resnet50_joint of testdata). A first
partition cuts each and marks its saved values; then the graph is joined. save-all runs on it alone,
after each pass with each choice of its options, after each pair of passes (not with --quick), and
after each pipeline in README.md.

The results are compared with save-all alone, by the names of values in the first partition.
Compared are the values that forward saves; if a pass turned a value into an input, such as an
identity view of one, that input counts. The numbers of gathers, attention calls and products must
not rise. Passes of EXACT must give the same values. After other passes each missing value must have
a mark with a verdict that names the rule, and an additional saved value is a difference in any
case. Last, --strict-tags must accept each policy followed by remat, and no marked value may be
recomputed.

Left out: partition{mark-saved=true}, which marks again, and mode=inference, after which there is no
backward. Pipelines with an option that drops marks are listed and do not fail:
partition{compat=torch}, since PyTorch's partitioners read no marks, and marked=override of a
policy.

--count runs each README pipeline, alone and followed by bucket, on any graphs (default: all of
testdata, including its dumps). It compares the output of `fxopt tags` before and after: the numbers
of the author's tags and of marks must stay the same, and each must have a verdict.

Prints one line for each pipeline that differs, and one table for each graph. Exits with 1 if a
difference has no rule. Needs no torch, no GPU.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from command import ROOT, command_line, testdata
from fxopt_program import Fxopt

Json = dict[str, Any]
NAMES = ("llama8b_joint", "gpt2_joint", "resnet50_joint")
FIRST = "partition{mode=min-cut,mark-saved=true}"
SECOND = "partition{mode=save-all}"
# Passes that must not change the saved values.
EXACT = frozenset(
    "canonicalize cse dce raise-getitems infer-phase bucket dedup-unshards fuse-gathers compute-cap alias-round-trips".split()
)
# Values of options without a list of choices; every choice of the others is tried.
VALUES = {
    "bucket": ("all-gather=50MiB", "reduce-scatter=200MiB", "all-reduce=200MiB", "max-growth=-1", "max-growth=0"),
    "compute-cap": ("max-consecutive=0", "max-consecutive=2", "max-live=500MiB"),
    "dedup-unshards": ("max-growth=-1", "max-growth=0"),
    "sac": ("recompute-every=0", "recompute-every=3", "exclude=layers", "recompute=aten.mm.default"),
    "remat": ("exclude=layers",),
    "fsdp-gathers": (), "partition": (),
}  # fmt: skip
LEFT_OUT = re.compile(r"mark-saved=true|mode=inference")
COSTLY = re.compile(r"all_gather|attention|aten\.(mm|bmm|addmm|baddbmm|convolution)\.")
POLICIES = ("sac{policy=full}", "sac", "fsdp-gathers", "sac{policy=full},fsdp-gathers", "")


# ---- saved values of a pair of graphs


@dataclass
class Saved:
    """`values`: names in the first partition, and "input NAME" for inputs. `calls`: both graphs'
    calls, by operator. `inputs_of`: marked values that became an input."""

    values: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    inputs_of: dict[str, str] = field(default_factory=dict)


def custom_of(node: Json) -> dict[str, Any]:
    found = next((entry["value"] for entry in node.get("meta", ()) if entry["key"] == "custom"), {})
    plain: dict[str, Any] = {}
    for item in found.get("dict", {}).get("items", ()):
        value = item["value"]
        if "list" in value:
            plain[item["key"]["string"]] = [part.get("string") for part in value["list"].get("items", ())]
        else:
            plain[item["key"]["string"]] = next(iter(value.values()), None)
    return plain


def names_of(node: Json, nodes: dict[str, Json]) -> list[str]:
    """The names of the saved value in the first partition, including all values merged into it."""
    if node["kind"] == "NODE_KIND_PLACEHOLDER":
        return [f"input {node['name']}"]
    whole = node
    part = None
    if node.get("target") == "operator.getitem" and "node" in node["args"][0]:
        whole, part = nodes[node["args"][0]["node"]], int(node["args"][1]["int_value"])
    custom = custom_of(whole)
    if not custom.get("ap_must_save"):
        custom, part, whole = custom_of(node), None, node
    if not custom.get("ap_must_save"):
        return [f"unmarked {node['name']}"]
    name, also = custom.get("ap_must_save_as", whole["name"]), custom.get("ap_must_save_also", [])
    if part is None:
        return [name, *also]
    renamed = [each.rpartition("=")[0] for each in also if each.endswith(f"={part}")]
    merged = [each.rpartition("@")[0] for each in also if each.endswith(f"@{part}")]
    return [*(renamed or [f"{name}[{part}]"]), *merged]


def saved_by(module: Json) -> Saved:
    saved = Saved()
    graphs = {graph["kind"]: graph for graph in module["graphs"] if "kind" in graph}
    forward = graphs["GRAPH_KIND_FORWARD"]
    nodes = {node["name"]: node for node in forward["nodes"]}
    output = forward["nodes"][-1]["args"][0]
    leaves = next(iter(output.values()))["items"]
    for leaf in leaves[int(forward.get("num_forward_outputs", 0)) :]:
        node = nodes[leaf["node"]]
        if "symbolic" not in node.get("value", {}) and "symbol" not in node.get("value", {}):
            saved.values.update(names_of(node, nodes))
    merged = {
        int(origin.get("uid", 0)): node["name"]
        for node in forward["nodes"] if node["kind"] == "NODE_KIND_PLACEHOLDER"
        for origin in node.get("origins", ())
    }  # fmt: skip
    for erased in module.get("erased", ()):
        if erased.get("is_mark") and int(erased["uid"]) in merged:
            saved.inputs_of[erased["name"]] = f"input {merged[int(erased['uid'])]}"
    for graph in module["graphs"]:
        calls = (node["target"] for node in graph["nodes"] if node["kind"] == "NODE_KIND_CALL_FUNCTION")
        saved.calls.update("all_gather" if "all_gather" in target else target for target in calls)
    return saved


# ---- pipelines


def with_options(known: list[Json]) -> Iterator[str]:
    for each in known:
        texts = list(VALUES.get(each["name"], ()))
        for option in each["options"]:
            choices = ("true", "false") if option["type"] == "bool" else option["choices"]
            texts += [f"{option['name']}={choice}" for choice in choices]
        yield each["name"]
        yield from (f"{each['name']}{{{text}}}" for text in texts)
    yield "sac{policy=full,strength=prefer,marked=override}"
    yield "partition{mode=min-cut,compat=torch}"
    yield "partition{mode=save-all,prefer-recompute=loses}"


def of_readme() -> list[str]:
    pages = [ROOT / "README.md", *sorted((ROOT / "cli/topics").glob("*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    return list(dict.fromkeys(re.findall(r"--passes '([^']+)'", text))) + ["infer-phase,canonicalize,cse,remat,dce"]


def pipelines(known: list[Json], is_quick: bool) -> list[str]:
    names = [each["name"] for each in known]
    texts = [*with_options(known), *of_readme()]
    if not is_quick:
        texts += [f"{one},{two}" for one, two in itertools.product(names, names)]
    return [text for text in dict.fromkeys(texts) if not LEFT_OUT.search(text)]


def passes_of(text: str) -> list[str]:
    return re.findall(r"(?:^|,)([a-z][a-z-]*)(?=[{,]|$)", re.sub(r"\{[^}]*\}", "{", text).replace("{", ""))


def is_told_otherwise(text: str) -> bool:
    """Whether an option drops marks: PyTorch's partitioners read none, and a policy may override
    them."""
    return "compat=torch" in text and "partition" in text or "marked=override" in text


# ---- runs


@dataclass
class Outcome:
    pipeline: str
    refused: str = ""
    missing: list[str] = field(default_factory=list)  # without a rule
    by_rule: Counter[str] = field(default_factory=Counter)
    added: list[str] = field(default_factory=list)
    more: dict[str, tuple[int, int]] = field(default_factory=dict)  # calls before and now
    calls: Counter[str] = field(default_factory=Counter)

    @property
    def is_wrong(self) -> bool:
        is_exact = set(passes_of(self.pipeline)) <= EXACT
        # Values recomputed in place of a saved value may read inputs.
        added = [name for name in self.added if is_exact or not self.by_rule or not name.startswith("input ")]
        wrong = self.missing or added or (is_exact and (self.by_rule or self.more))
        return bool(wrong) and not is_told_otherwise(self.pipeline)


def run(program: str, source: pathlib.Path, passes: str, target: pathlib.Path) -> tuple[int, str]:
    flags = ["--no-prove", "--no-reproducer", "--numerics", "reorders-reductions"]
    done = subprocess.run([program, "opt", str(source), "-o", str(target), "--passes", passes, *flags], capture_output=True, text=True)
    return done.returncode, done.stderr


def verdicts(program: str, path: pathlib.Path) -> Json:
    """The report of `fxopt tags` on the file."""
    done = subprocess.run([program, "tags", str(path), "--json"], capture_output=True, text=True)
    return json.loads(done.stdout)["result"]["files"][0]


def load(path: pathlib.Path) -> Json:
    return json.loads(path.read_text(encoding="utf-8"))["module"]


def judge(program: str, marked: pathlib.Path, alone: Saved, text: str) -> Outcome:
    outcome = Outcome(text)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source, target = folder / "before.pb", folder / "after.json"
        is_cut = any(part.startswith("partition") for part in text.split(",") if "cut=false" not in text) and "cut=false" not in text
        front = f"{text},join" if is_cut and not text.endswith("join") else text
        code, said = run(program, marked, front, source)
        if code:
            outcome.refused = next((line for line in said.splitlines() if "error[" in line), said.strip())
            return outcome
        code, said = run(program, source, SECOND, target)
        if code:
            outcome.missing = [next((line for line in said.splitlines() if "error[" in line), said.strip())]
            return outcome
        compare(outcome, alone, saved_by(load(target)))
        if outcome.missing:
            name_rules(program, outcome, target)
    return outcome


def compare(outcome: Outcome, alone: Saved, now: Saved) -> None:
    """Compares the saved values. On both sides, an input replaces the marked values that became
    it."""
    there = set(now.values)
    wanted = set(alone.values)
    resolved = {name: now.inputs_of.get(name, name) for name in wanted}
    outcome.missing = sorted(name for name, known in resolved.items() if known not in there)
    outcome.added = sorted(there - wanted - set(resolved.values()) - set(alone.inputs_of))
    outcome.calls = now.calls
    for target in sorted(now.calls):
        if COSTLY.search(target) and now.calls[target] > alone.calls[target]:
            outcome.more[target] = (alone.calls[target], now.calls[target])


def name_rules(program: str, outcome: Outcome, path: pathlib.Path) -> None:
    rules = {
        row["value"]: f"{row['outcome']} by {row['rule']}"
        for row in verdicts(program, path)["tags"] if row["kind"] == "mark" and row["outcome"] in ("overridden", "moot", "implied")
    }  # fmt: skip
    for name in outcome.missing:
        if name in rules:
            outcome.by_rule[rules[name]] += 1
    outcome.missing = [name for name in outcome.missing if name not in rules]


def mark(program: str, source: pathlib.Path, first: str, folder: pathlib.Path) -> pathlib.Path:
    target = folder / "marked.pb"
    code, said = run(program, source, f"{first},join", target)
    if code:
        raise RuntimeError(f"{source}: {said}")
    return target


def strict(program: str, marked: pathlib.Path, folder: pathlib.Path) -> list[str]:
    wrong = []
    for policy in POLICIES:
        passes = ",".join(filter(None, (policy, "remat")))
        target = folder / "strict.pb"
        done = subprocess.run(
            [program, "opt", str(marked), "-o", str(target), "--passes", passes, "--strict-tags", "--no-prove"],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            wrong.append(f"{passes} --strict-tags: exit {done.returncode}: {done.stderr.strip().splitlines()[-1]}")
            continue
        marks = verdicts(program, target)["marks"]
        if set(marks) - {"honoured", "implied", "moot"}:
            wrong.append(f"{passes}: marks: {marks}")
    return wrong


def report(name: str, alone: Saved, outcomes: list[Outcome]) -> bool:
    done = [each for each in outcomes if not each.refused]
    gathers = alone.calls["all_gather"]
    print(f"\n## {name}: save-all alone saves {sum(alone.values.values())} values, {gathers} gathers in both graphs")
    for each in outcomes:
        if each.is_wrong:
            print(f"WRONG {each.pipeline}: missing {each.missing[:4]}, added {each.added[:4]}, rules {dict(each.by_rule)}, more {each.more}")
    print("| pass | pipelines | differ by a rule | more calls | wrong |")
    print("|---|---:|---:|---:|---:|")
    for one in sorted({part for each in done for part in passes_of(each.pipeline)}):
        of = [each for each in done if one in passes_of(each.pipeline)]
        ruled, more = sum(bool(each.by_rule) for each in of), sum(bool(each.more) for each in of)
        print(f"| {one} | {len(of)} | {ruled} | {more} | {sum(each.is_wrong for each in of)} |")
    for each in done:
        if each.by_rule:
            print(f"by rule: {each.pipeline}: {dict(each.by_rule)}, more calls {each.more}")
    refused = Counter(re.sub(r".*(error\[FX\d+\]).*", r"\1", each.refused) for each in outcomes if each.refused)
    rules = sum((each.by_rule for each in done), Counter())
    print(f"{len(done)} pipelines compared; not run: {dict(refused)}; values missing by rule: {dict(rules)}", flush=True)
    return any(each.is_wrong for each in done)


# ---- counts


def counted(rows: list[Json]) -> Counter[str]:
    """The author's tags and the marks, by kind; those without a verdict count separately."""
    own = [row for row in rows if not row["written_by"]]
    return Counter(f"{row['kind']} without a verdict" if row["outcome"] == "not judged" else row["kind"] for row in own)


@dataclass
class Counts:
    """The pipelines that ran, the listed tags of the graph and of its pair before them, and the
    pipelines after which other tags are listed."""

    before: list[Counter[str]] = field(default_factory=list)
    ran: int = 0
    wrong: list[str] = field(default_factory=list)


def count_one(program: str, path: pathlib.Path) -> Counts:
    counts = Counts()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        pair, target = folder / "pair.pb", folder / "after.pb"
        code, _ = run(program, path, "sac{policy=full},partition{mark-saved=true}", pair)
        for source in [path] if code else [path, pair]:
            before = counted(verdicts(program, source)["tags"])
            counts.before.append(before)
            for text, more in itertools.product(of_readme(), ("", ",bucket")):
                code, _ = run(program, source, text + more, target)
                if code:
                    continue  # for example, the graph is not joint
                counts.ran += 1
                after = counted(verdicts(program, target)["tags"])
                # tags that the caller selects count as the author's
                adds = "mark-saved=true" in text or "recompute=" in text
                if after != before and not (adds and all(after[kind] >= number for kind, number in before.items())):
                    counts.wrong.append(f"{text}{more}: {dict(before)} before, {dict(after)} after")
    return counts


def count(program: str, paths: list[pathlib.Path], jobs: int) -> int:
    is_wrong, total = False, 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for path, counts in zip(paths, pool.map(lambda path: count_one(program, path), paths), strict=True):
            listed_before = ", as a pair ".join(str(dict(before)) for before in counts.before)
            print(f"{path.name}: {listed_before}; {counts.ran} pipelines: {'; '.join(counts.wrong) or 'as many after each'}", flush=True)
            total += counts.ran
            is_wrong = is_wrong or bool(counts.wrong)
    print(f"{total} pipelines on {len(paths)} graphs")
    return int(is_wrong)


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--first", default=FIRST, metavar="PASSES", help=f"the first partition (default: {FIRST})")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--count", action="store_true")
    parser.add_argument("graphs", nargs="*", metavar="GRAPH")
    options = parser.parse_args()
    fxopt = Fxopt(options.fxopt)
    if options.count:
        return count(fxopt.program, [pathlib.Path(name) for name in options.graphs] or sorted(testdata()), options.jobs)
    texts = pipelines(fxopt.run("passes")["passes"], options.quick)
    is_wrong = False
    paths = [pathlib.Path(name) for name in options.graphs] or [ROOT / "testdata" / f"{name}.pb.zst" for name in NAMES]
    for path in paths:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            marked = mark(fxopt.program, path, options.first, folder)
            wrong = strict(fxopt.program, marked, folder)
            print(f"{path.name}: --strict-tags behind {len(POLICIES)} policies: {'; '.join(wrong) or 'ok'}", flush=True)
            is_wrong = is_wrong or bool(wrong)
            code, said = run(fxopt.program, marked, SECOND, folder / "alone.json")
            if code:
                raise RuntimeError(said)
            alone = saved_by(load(folder / "alone.json"))
            with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                outcomes = list(pool.map(lambda text: judge(fxopt.program, marked, alone, text), texts))
            is_wrong = report(path.name, alone, outcomes) or is_wrong
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
