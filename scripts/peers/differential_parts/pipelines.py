"""Random pipelines over every pass that the fxopt program has, with options."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from torch.fx import GraphModule

from differential_parts.programs import Dice, schema_of

# Options whose documented purpose is another result. They are left out by construction; `compat` of every pass is, too.
EXCLUDED = {"dce": {"random": "remove", "assertions": "remove", "collectives": "remove"}}
CUTS = ("partition", "partition{mode=min-cut}", "partition{mode=min-cut,compat=torch}")
FOR_JOINT = frozenset({"partition", "join"})  # passes that refuse graphs which are not cut, or cannot be
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
    """The passes whose results are to be equal bit by bit."""
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
) -> list[str]:
    """Different pipelines: a pass alone at times, README's, and random ones; with remat mostly where there are tags, with
    infer-phase often where backward is not marked, with partition and join where the graph is a joint one."""
    others = [item for item in passes if item.name not in FOR_JOINT]
    result: dict[str, None] = {}
    for _ in range(count * 3):
        if len(result) < count:
            text = _pipeline(dice, others, graph_module, tagged, unmarked)
            result[_with_cut(dice, others, graph_module, text) if joint else text] = None
    return list(result)


def _with_cut(dice: Dice, passes: Sequence[Pass], graph_module: GraphModule, text: str) -> str:
    """The pipeline, and mostly the graph cut in two after it; then other passes on both halves; then joined, and cut again."""
    parts = [text]
    if dice.chance(0.7):
        parts.append(dice.choice(CUTS))
    after = [item for item in passes if not item.needs]  # of phases and tags partition has decided
    if dice.chance(0.4):
        parts.append(_text(dice, dice.choice(after), graph_module))
    if dice.chance(0.5):
        parts += ["join"] if any(part in CUTS for part in parts) else []
    if dice.chance(0.3):
        parts.append(dice.choice(CUTS))
    return ",".join(parts)


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
        case "int":
            return str(dice.randrange(4))
        case "enum list":
            return ",".join(choice for choice in option["choices"] if dice.chance(0.7)) or option["choices"][0]
    if option["name"] == "save-ops":
        names = [str(node.target) for node in graph_module.graph.nodes if schema_of(node) is not None]
        return ",".join(sorted(set(dice.sample(names, min(len(names), 2))))) or None
    return None
