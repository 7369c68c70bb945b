"""Random pipelines over all passes of the fxopt program, with options."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from torch.fx import GraphModule

from differential_parts.programs import Dice, schema_of

# Options whose documented purpose is another result are left out; so is `compat` of every pass.
EXCLUDED = {
    "dce": {"random": "remove", "assertions": "remove", "collectives": "remove"},
    "dedup-unshards": {"reductions": "merge"},
}
CUTS = ("partition", "partition{compat=torch}", "partition{mode=min-cut}", "partition{mode=min-cut,compat=torch}")
INFERENCE = "partition{mode=inference}"
MARKING = ("partition{mode=default,mark-saved=true}", "partition{mode=min-cut,mark-saved=true}")
AGAIN = ("partition{mode=save-all,prefer-recompute=loses}", "partition{mode=save-all}")
INFERRING = "mode=inference"
# By type: values that make a difference in programs as small as these, and values at or beyond the
# end of the range.
NUMBERS = {
    "int": (["0", "1", "2", "3", "4", "8"], ["1500", "-1", "2147483648", "9223372036854775807", "9223372036854775808"]),
    "bytes": (
        ["0", "1B", "16B", "64B", "100B", "256B", "1KiB", "200MiB"],
        ["-1", "1", "0.5B", "1.5KiB", "7EiB", "16EiB", "1e3B", "-0"],
    ),
    "share": (["0", "0.05", "5%", "0.5", "100%", "-1", "10"], ["-0.0", "1e-300", "1e300", "inf", "nan", "%", "5 %"]),
    "float": (["0", "0.05", "0.5", "1", "-1", "10"], ["-0.0", "1e-300", "1e300", "inf", "nan", "-5e-324"]),
}  # fmt: skip
BEYOND = 0.12  # share of numbers from the second list
NAMES = ("lm_head", "loss", "layers.*", "layers.0", "norm+lm_head", "moe.router.gate", "*", "nothing.here")
# Pipelines between two cuts.
KEEP_MARKS = (
    "cse", "dce", "canonicalize", "raise-getitems", "canonicalize,cse", "cse,dce", "remat", "infer-phase,canonicalize,cse,remat,dce",
    "bucket{max-growth=-1}", "bucket{max-growth=-1,form=coalesced}", "dedup-unshards", "fuse-gathers", "alias-round-trips", "compute-cap",
    "compute-cap{max-consecutive=1,max-live=64B}", "bucket{reduce-scatter=1KiB,all-reduce=1KiB,max-growth=-1}",
)  # fmt: skip
# For graphs that gather parameters: pipelines that merge or move gathers.
FOR_GATHERS = (
    "bucket{groups=all,max-growth=-1}", "bucket{groups=all,max-growth=-1,form=out}", "bucket{groups=all,max-growth=-1,form=coalesced}",
    "bucket{reduce-scatter=1KiB,all-reduce=1KiB,groups=all,max-growth=-1}", "bucket{reduce-scatter=256B,groups=all,max-growth=-1,form=out}",
    "bucket{all-gather=256B,reduce-scatter=1KiB,groups=all,max-growth=-1,payload=parameters,form=coalesced}",
    "bucket{all-gather=128B,groups=all,max-growth=0.5,max-span=20}", "compute-cap{max-consecutive=1}", "compute-cap{max-live=64B}",
    "compute-cap{max-consecutive=2,max-live=256B}", "dedup-unshards{max-growth=-1}",
)  # fmt: skip
# passes that refuse graphs that are not cut, or cannot be cut
FOR_JOINT = frozenset({"partition", "join"})
README = (
    "canonicalize,cse,sac{policy=per-op},remat,dce",
    "cse,sac{policy=per-op},remat,dce",
    "cse,sac{policy=full},remat,dce",
    "infer-phase,canonicalize,cse,remat,dce",
    "remat,dce",
    "cse,dce",
    "canonicalize,cse,remat,dce",
    "sac{policy=full},remat",
)


@dataclass(frozen=True)
class Pass:
    name: str
    needs: frozenset[str]
    ends: frozenset[str]
    options: tuple[dict, ...]


def known_passes(fxopt: str) -> list[Pass]:
    """The passes whose results must be equal bit by bit."""
    done = subprocess.run([fxopt, "passes", "--json"], capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)["result"]["passes"]
    return [
        Pass(row["name"], frozenset(row["needs"]), frozenset(item["ends"] for item in row["ends"]), tuple(row["options"]))
        for row in rows
        if row["class"] == "exact"
    ]


def random_pipelines(
    dice: Dice,
    passes: Sequence[Pass],
    graph_module: GraphModule,
    count: int,
    *,
    tagged: bool,
    unmarked: bool = False,
    joint: bool = False,
    marked: bool = False,
) -> list[str]:
    """Distinct pipelines: sometimes a single pass, README's, and random ones. remat is mostly drawn
    if there are tags, infer-phase often if backward is not marked, partition and join if the graph
    is a joint one."""
    others = [item for item in passes if item.name not in FOR_JOINT]
    has_gathers = any("all_gather" in str(node.target) for node in graph_module.graph.nodes)
    result: dict[str, None] = {}
    for _ in range(count * 3):
        if len(result) < count:
            text = _pipeline(dice, others, graph_module, tagged, unmarked)
            if has_gathers and dice.chance(0.4):
                text = ",".join(dice.sample([text, dice.choice(FOR_GATHERS)], 2))
            if joint:
                text = _with_cut(dice, others, graph_module, text, marked)
            result[text] = None
    return list(result)


def _with_cut(dice: Dice, passes: Sequence[Pass], graph_module: GraphModule, text: str, marked: bool) -> str:
    """If a first partition has marked values, often a cut by these marks. Otherwise mostly the
    pipeline, a cut in two, other passes on both halves, then a join and a second cut. Sometimes
    only a cut and a join, or two cuts, as two compilations of one step do, the second by the marks
    of the first."""
    if marked and dice.chance(0.5):
        front = [text if dice.chance(0.3) else "", dice.choice(KEEP_MARKS) if dice.chance(0.6) else ""]
        return ",".join(part for part in [*front, dice.choice(AGAIN), *(["join"] if dice.chance(0.3) else [])] if part)
    kind = dice.random()
    if kind < 0.1:
        return f"{dice.choice(CUTS + MARKING)},join"
    if kind < 0.4 and dice.chance(0.7):
        text = ""
    parts = [_with_gathers(dice, text) if dice.chance(0.3) else text]
    if kind < 0.4:
        return ",".join(part for part in [*parts, *_cut_twice(dice)] if part)
    if dice.chance(0.15):
        parts.append(INFERENCE)
    elif dice.chance(0.7):
        parts.append(_cut(dice))
    after = [item for item in passes if not item.needs]  # partition has used phases and tags
    if dice.chance(0.4):
        parts.append(_text(dice, dice.choice(after), graph_module))
    if dice.chance(0.5):
        is_cut = any(part.startswith("partition") and INFERRING not in part and "cut=false" not in part for part in parts)
        parts += ["join"] if is_cut else []
    if dice.chance(0.3) and not any(INFERRING in part for part in parts):
        parts.append(_cut(dice, ("default", "min-cut", "save-all")))  # a pair stays unchanged
    return ",".join(parts)


def _with_gathers(dice: Dice, text: str) -> str:
    """Inserts fsdp-gathers as early as possible: after infer-phase."""
    strength = dice.choice(["", "", ",strength=must", ",strength=prefer", ",strength=prefer,marked=override"])
    gathers = f"fsdp-gathers{{policy={dice.choice(['recompute', 'save'])},through={dice.choice(['chain', 'wait'])}{strength}}}"
    names = text.split(",")
    place = max((place for place, name in enumerate(names, 1) if name == "infer-phase"), default=0)
    if any(name.startswith("remat") for name in names[:place]):
        return text
    return ",".join(name for name in [*names[:place], gathers, *names[place:]] if name)


def _cut_twice(dice: Dice) -> list[str]:
    """Two cuts. The second saves the values of the first; its input is one graph, either not cut or
    joined again."""
    first, between = dice.choice(MARKING), [[dice.choice(KEEP_MARKS)] if dice.chance(0.35) else [] for _ in range(2)]
    cut = [first, *between[0], "join"] if dice.chance(0.6) else [first.replace("}", ",cut=false}"), *between[0]]
    return [*cut, *between[1], dice.choice(AGAIN), *(["join"] if dice.chance(0.3) else [])]


def _pipeline(dice: Dice, passes: Sequence[Pass], graph_module: GraphModule, tagged: bool, unmarked: bool) -> str:
    kind = dice.random()
    by_name = {item.name: item for item in passes}
    if kind < 0.2:
        return dice.choice([text for text in README if "remat" in text or not tagged])
    if kind < 0.35:
        alone = by_name["remat"] if tagged and "remat" in by_name and dice.chance(0.6) else dice.choice(passes)
        return _text(dice, alone, graph_module)
    chosen = dice.choices(passes, k=dice.randint(2, 6))
    if tagged and "remat" in by_name and dice.chance(0.9):
        chosen.insert(dice.randrange(len(chosen) + 1), by_name["remat"])
    if unmarked and "infer-phase" in by_name and dice.chance(0.8):
        chosen.insert(0, by_name["infer-phase"])
    if dice.chance(0.2) and "raise-getitems" in by_name:
        chosen.append(by_name["raise-getitems"])
    allowed: list[Pass] = []
    for item in chosen:
        if not any(earlier.ends & item.needs for earlier in allowed):
            allowed.append(item)
    return ",".join(_text(dice, item, graph_module) for item in allowed)


def _text(dice: Dice, item: Pass, graph_module: GraphModule) -> str:
    told = []
    for option in item.options:
        if not dice.chance(0.35) or option["name"] == "compat":
            continue
        value = _value(dice, option, graph_module)
        if value is not None and EXCLUDED.get(item.name, {}).get(option["name"]) != value:
            told.append(f'{option["name"]}="{value}"' if "," in value else f"{option['name']}={value}")
    return item.name + (f"{{{','.join(told)}}}" if told else "")


def _value(dice: Dice, option: dict, graph_module: GraphModule) -> str | None:
    match option["type"]:
        case "bool":
            return dice.choice(["true", "false"])
        case "enum":
            return dice.choice(option["choices"])
        case "enum list":
            return ",".join(choice for choice in option["choices"] if dice.chance(0.7)) or option["choices"][0]
        case "int" | "bytes" | "float" | "share":
            return dice.choice(NUMBERS[option["type"]][dice.chance(BEYOND)])
        case "pattern list":
            return ",".join(_pattern(dice, graph_module) for _ in range(dice.randint(1, 3)))
        case "string list" if option["name"] == "save-ops":
            return ",".join(_ops(dice, graph_module)) or None
        case "string list":
            return ",".join(dice.sample(_modules(graph_module), dice.randint(1, 2)))
    raise ValueError(f"nothing is drawn for options of type {option['type']}")


def _ops(dice: Dice, graph_module: GraphModule) -> list[str]:
    names = [str(node.target) for node in graph_module.graph.nodes if schema_of(node) is not None]
    return sorted(set(dice.sample(names, min(len(names), 2))))


def _modules(graph_module: GraphModule) -> list[str]:
    """Paths of modules in the graph, and some that models have."""
    stacks = [node.meta.get("nn_module_stack") or {} for node in graph_module.graph.nodes]
    paths = {str(entry[0]) for stack in stacks for entry in stack.values() if entry[0]}
    return [*sorted(path for path in paths if path.replace(".", "").replace("_", "").isalnum()), *NAMES]


def _pattern(dice: Dice, graph_module: GraphModule) -> str:
    """An op of the graph or several, sometimes limited to some modules."""
    (name,) = _ops(dice, graph_module)[:1] or ["aten.mm.default"]
    op = dice.choice([name, name, name.rpartition(".")[0] + ".*", "aten.*", "*"])
    return f"{dice.choice(_modules(graph_module))}::{op}" if dice.chance(0.3) else op


def _cut(dice: Dice, modes: Sequence[str] = ("default", "min-cut", "save-all", "inference")) -> str:
    """A typical cut, or any of these modes."""
    if dice.chance(0.75):
        return dice.choice(CUTS)
    told = [f"mode={dice.choice(modes)}"]
    told += ["compat=torch"] if dice.chance(0.3) and told[0] in ("mode=default", "mode=min-cut") else []
    told += [f"prefer-recompute={dice.choice(['wins', 'loses'])}"] if dice.chance(0.3) else []
    told += [f"mark-saved={dice.choice(['true', 'false'])}"] if dice.chance(0.5) else []
    told += [f"cut={dice.choice(['true', 'false'])}"] if dice.chance(0.4) else []
    return f"partition{{{','.join(told)}}}"
