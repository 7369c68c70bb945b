#!/usr/bin/env python3
"""Checks that `fxopt ranks` finds edits that make ranks diverge, and raises no false alarm.

    scripts/peers/rank_edits.py [--fxopt PROGRAM] [--edits N] [--seed N] [--world N] [NAME...]

NAME is a sharded twin of testdata, traced for one rank. One file is made from it for each rank: its
groups become those of that rank (the same, shifted), it names its rank, and some nodes have other
names. Then one rank's file is edited in one place. Either the edit changes the issued collectives:
two calls of a group exchanged, a call left out, another type, number of elements, reduction or
group. Every such set must be found, by exit code 6. Or it does not change them: other names, an
additional node, the same elements under other sizes. No such set may be reported. --world N also
times N files, and one.

Exits with 1 if an edit is missed or a correct set is reported. Needs no torch.
"""

from __future__ import annotations

import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter

from command import ROOT, command_line, program_of

NAMES = ("llama8b_flb_twin", "llama8b_joint_twin", "deepseek16b_twin")
START = re.compile(r"^  %(\S+): (\w+)\[([\d, ]*)\](\S*) = _c10d_functional\.(\w+)\.default\(%(\S+?), (.*)\) ?(\{.*)?$")
GROUP = re.compile(r'^process_group \{uid="(\w+)", ranks=\[([\d, ]*)\]')
SENT = ("all_gather_into_tensor", "reduce_scatter_tensor", "all_reduce")
HARMLESS = ("names", "a node more", "other sizes")
KINDS = ("exchange", "omit", "type", "elements", "reduction", "group")


def shifted(ranks: list[int], rank: int) -> list[int]:
    """The group of that rank among the shifted copies of the group."""
    covered: set[int] = set()
    for first in range(rank + 1):
        if first in covered:
            continue
        group = [first - ranks[0] + other for other in ranks]
        if rank in group:
            return group
        covered |= set(group)
    raise ValueError(f"no group of rank {rank}")


def elements_of(sizes: str) -> int:
    return math.prod(int(size) for size in sizes.replace(" ", "").split(",") if size)


class Source:
    """A rank's graph as lines of text, without certificates and spans of metadata."""

    def __init__(self, fxopt: str, name: str, folder: pathlib.Path) -> None:
        self.name = name
        text = folder / f"{name}.fxg"
        subprocess.run([fxopt, "convert", str(ROOT / "testdata" / f"{name}.pb.zst"), "-o", str(text)], check=True)
        lines = text.read_text(encoding="utf-8").splitlines()
        self.lines = [line for line in lines if not line.startswith(("certificate", "rank ", "rank_context", "device_mesh"))]
        uids = {uid for line in self.lines if (match := START.match(line)) for uid in re.findall(r'"(\w+)"', match[7])}
        self.groups = {match[1]: match[2] for line in self.lines if (match := GROUP.match(line))}
        self.world = next(int(match[1]) for line in lines if (match := re.match(r"rank \{.*world_size=(\d+)", line)))
        self.used = {uid: [int(rank) for rank in self.groups[uid].split(",")] for uid in sorted(uids & set(self.groups))}

    def of(self, rank: int, world: int = 0) -> list[str]:
        """That rank's lines, in a world of the file's size, or a larger one."""
        lines = []
        for line in self.lines:
            match = GROUP.match(line)
            if match and match[1] not in self.used:
                continue
            if match:
                line = line.replace(f"ranks=[{match[2]}]", f"ranks=[{', '.join(map(str, shifted(self.used[match[1]], rank)))}]")
            lines.append(line)
        return [lines[0], f"rank {{rank={rank}, world_size={world or self.world}}}", *lines[1:]]


def starts(lines: list[str]) -> list[tuple[int, re.Match[str]]]:
    return [(i, match) for i, line in enumerate(lines) if (match := START.match(line)) and match[5] in SENT]


def renamed(lines: list[str], dice: random.Random) -> list[str]:
    """Renames some starts."""
    for _, match in dice.sample(found := starts(lines), min(3, len(found))):
        lines = [re.sub(rf"%{re.escape(match[1])}\b(?!_)", f"%{match[1]}_other", line) for line in lines]
    return lines


def edited(lines: list[str], kind: str, groups: dict[str, list[int]], dice: random.Random) -> list[str] | None:
    """The lines with one edit of that kind; None if the graph has no place for it."""
    lines, found = list(lines), starts(lines)
    dice.shuffle(found)
    for i, match in found:
        name, dtype, sizes, rest, op, given, arguments, more = match.groups()
        uid = re.search(r'"(\w+)"$', arguments)[1]
        more = f" {more}" if more else ""
        if kind == "names":
            return renamed(lines, dice)
        if kind == "a node more":
            lines.insert(i, f"  %{given}_more: {dtype}[1] = aten.new_empty.default(%{given}, [1])")
            return lines
        if kind == "other sizes" and op == "all_reduce":
            count = elements_of(sizes)
            lines[i] = f"  %{name}: {dtype}[{count}] = _c10d_functional.{op}.default(%{given}_flat, {arguments}){more}"
            lines.insert(i, f"  %{given}_flat: {dtype}[{count}] = aten.reshape.default(%{given}, [{count}])")
            return lines
        if kind == "exchange":
            for j, other in sorted(found):
                same = re.search(r'"(\w+)"$', other[7])[1] == uid
                first = next((k for k, line in enumerate(lines) if line.startswith(f"  %{other[6]}:")), 0)
                unlike = (other[2], other[3], other[5], other[7]) != (dtype, sizes, op, arguments)
                between = [k for k, mid in found if i < k < j and re.search(r'"(\w+)"$', mid[7])[1] == uid]
                if same and unlike and j > i > first and not between:
                    line = lines.pop(j)
                    lines.insert(i, line)
                    return lines
        elif kind == "omit":
            lines[i] = f"  %{name}: {dtype}[{sizes}]{rest} = aten.new_empty.default(%{given}, [{sizes}]){more}"
            wait = f"_c10d_functional.wait_tensor.default(%{name})"
            return [line.replace(wait, f"aten.alias.default(%{name})") for line in lines]
        elif kind == "type":
            to = "f64" if dtype != "f64" else "f32"
            for k, line in enumerate(lines):
                if line.startswith(f"  %{given}:"):
                    shape = line.split(":", 1)[1].split("]")[0].split("[")[1]
            lines[i] = f"  %{name}: {to}[{sizes}] = _c10d_functional.{op}.default(%{given}_typed, {arguments}){more}"
            lines.insert(i, f"  %{given}_typed: {to}[{shape}] = aten._to_copy.default(%{given}, dtype=dtype({to}))")
            return lines
        elif kind == "elements" and op == "all_reduce":
            count = elements_of(sizes)
            if count > 1:
                lines[i] = f"  %{name}: {dtype}[{count // 2}] = _c10d_functional.{op}.default(%{given}_half, {arguments}){more}"
                half = f"aten.new_empty.default(%{given}, [{count // 2}])"
                lines.insert(i, f"  %{given}_half: {dtype}[{count // 2}] = {half}")
                return lines
        elif kind == "reduction" and '"sum"' in arguments:
            lines[i] = lines[i].replace('"sum"', '"avg"')
            return lines
        elif kind == "group":
            for to in dice.sample(sorted(groups), len(groups)):
                if to != uid and len(groups[to]) == len(groups[uid]):
                    lines[i] = lines[i].replace(f'"{uid}")', f'"{to}")')
                    return lines
    return None


def judged(fxopt: str, files: list[pathlib.Path]) -> tuple[int, str]:
    done = subprocess.run([fxopt, "ranks", *map(str, files)], capture_output=True, text=True)
    return done.returncode, done.stderr


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--edits", type=int, default=1000, metavar="N", help="number of edits (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--world", type=int, default=0, metavar="N", help="also time N files")
    parser.add_argument("names", nargs="*", default=list(NAMES), metavar="NAME")
    options = parser.parse_args()
    fxopt = program_of(options)
    dice, counts, wrong = random.Random(options.seed), Counter(), 0
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        sources = [Source(fxopt, name, folder) for name in options.names]
        sets = []  # for each source: the lines of each rank, and the files
        for source in sources:
            texts = [renamed(source.of(rank), dice) for rank in range(source.world)]
            files = [folder / f"{source.name}_rank{rank}.fxg" for rank in range(source.world)]
            for file, lines in zip(files, texts):
                file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            status, said = judged(fxopt, files)
            counts["correct set", "found nothing" if status == 0 else "ALARM"] += 1
            if status != 0:
                wrong += 1
                print(f"{source.name}: alarm: exit {status}: {said[:300]}")
            sets.append((source, texts, files))
        done = 0
        while done < options.edits:
            source, texts, files = dice.choice(sets)
            rank, kind = dice.randrange(source.world), dice.choice((*KINDS, *HARMLESS))
            lines = edited(texts[rank], kind, source.used, dice)
            if lines is None:
                continue
            done += kind in KINDS
            changed = folder / "edited.fxg"
            changed.write_text("\n".join(lines) + "\n", encoding="utf-8")
            status, said = judged(fxopt, [*files[:rank], changed, *files[rank + 1 :]])
            expected = 6 if kind in KINDS else 0
            said_as = {(6, 6): "found", (0, 0): "found nothing", (6, 0): "MISSED", (0, 6): "ALARM"}
            counts[kind, said_as.get((expected, status), f"exit {status}")] += 1
            if status != expected:
                wrong += 1
                print(f"{kind} on {source.name}: exit {status}: {said[:400]}")
        for (kind, outcome), count in sorted(counts.items()):
            print(f"{kind:14} {outcome:14} {count}")
        if options.world > 0:
            source = sources[0]
            files = [folder / f"many{rank}.fxg" for rank in range(options.world)]
            for rank, file in enumerate(files):
                file.write_text("\n".join(source.of(rank, options.world)) + "\n", encoding="utf-8")
            for some in (files, files[:1]):
                start = time.perf_counter()
                status, said = judged(fxopt, some)
                print(f"{len(some)} files: exit {status}, {time.perf_counter() - start:.2f} s")
                wrong += status != 0
                if status != 0:
                    print(said[:400])
    print(f"{sum(count for (kind, _), count in counts.items() if kind in KINDS)} edits, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
