"""Mistakes to plant in a copy of fxopt: for each legality rule that the passes' headers state, the same program without it.

«...» is an expression that stands once in the file; in its place comes `instead` when that mistake is asked for.

Not planted, as no execution on one machine can show them: control dependencies, events and streams (what runs when), phases that
are never mixed, tags, regions and the place of copies (when memory is freed), equal results whose recorded symbols differ, a
symbol's definition that nothing reads as a value, offloads, and what a partitioner moves (tests/scripts/known_bugs_test.py).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    file: str
    code: str
    instead: str


@dataclass(frozen=True)
class Planted:
    name: str
    rule: str  # which no longer holds
    edits: tuple[Edit, ...]


CSE, DCE = "passes/clean/cse.cpp", "passes/clean/dce.cpp"
CANONICALIZE, RAISE = "passes/clean/canonicalize.cpp", "passes/clean/raise_getitems.cpp"
REPEAT, TAGS = "ir/step/repeat.cpp", "ir/step/tag_rules.cpp"
STORAGES, EFFECTS, EFFECT_MAP = "ir/alias/storages.cpp", "ir/alias/effects.cpp", "ir/alias/effect_map.cpp"
TABLE = "ir/ops/table.cpp"


def _one(name: str, rule: str, file: str, code: str, instead: str) -> Planted:
    return Planted(name, rule, (Edit(file, code, instead),))


_PURE = "Effect allowed = «Effect::kHostSync | Effect::kNondeterministic»;"
_SET_BITS = "Effect::kHostSync | Effect::kNondeterministic | Effect::"
_SAME_ARGS = "if («one.kind() != other.kind()» || one.has_unknown() || other.has_unknown()) return false;"

PLANTED: tuple[Planted, ...] = (
    _one("cse-random", "cse: the op is pure: no random draw", CSE, _PURE, f"{_SET_BITS}kRandom"),
    _one("cse-writes", "cse: the op is pure: no write", CSE, _PURE, f"{_SET_BITS}kMutates"),
    _one("cse-collectives", "cse: no collective unless told", CSE, _PURE, f"{_SET_BITS}kCollective | Effect::kWaits"),
    Planted(
        "cse-kinds",
        "cse: kinds of arguments distinguish 1 and True, None and 0",
        (
            Edit(CSE, _SAME_ARGS, "false"),
            Edit(CSE, "seed = hash_combine(seed, «static_cast<uint64_t>(arg.kind())»);", "arg.has_children() ? 1 : arg.is(ArgKind::kNode) ? 2 : 0"),
        ),
    ),
    Planted(
        "cse-float-bits",
        "cse: floats by their bits: 0.0 is not -0.0",
        (
            Edit(CSE, "} else if («one.as_bits() != other.as_bits()») {", "one.as_bits() != other.as_bits() && (one.as_bits() | other.as_bits()) << 1U != 0"),
            Edit(CSE, "seed = hash_combine(seed, «arg.as_bits()»);", "arg.as_bits() << 1U == 0 ? 0 : arg.as_bits()"),
        ),
    ),
    Planted(
        "cse-kwargs",
        "cse: keyword arguments are part of the key",
        (
            Edit(CSE, "«same_args(one.kwargs, other.kwargs)»;", "true"),
            Edit(CSE, "return «hash_args(seed, graph_[node].kwargs)»;", "seed"),
        ),
    ),
    Planted(
        "cse-modes",
        "cse: gradient mode and autocast are part of the key",
        (
            Edit(CSE, "(!one.is_call() || «modes_.of(a) == modes_.of(b)»)", "true"),
            Edit(CSE, "seed = hash_combine(seed, «modes_.of(node)»);", "0"),
        ),
    ),
    _one("cse-reads-written", "cse: nothing writes what the node reads between the two", CSE, "return «storages_.input_bytes_change(kept, kept, node) || storages_.input_bytes_change(node, kept, node)»;", "false"),
    _one("cse-copies-read", "cse: only a view reads no data, not what may be a view and is a copy", STORAGES, "[&](BufferId id) { return «id.is_valid() && buffer(id).producer == node»; });", "false"),
    Planted(
        "cse-input-metadata",
        "cse: nothing changes sizes, strides or storage of what the node is given between the two",
        (Edit(CSE, "if («storages_.input_metadata_changes(kept, kept, node) || storages_.input_metadata_changes(node, kept, node)») {", "false"),),
    ),
    _one("cse-kept-written", "cse: the storage the first node makes is never written", CSE, "if («makes_written_storage(kept)» || changes_in_place(kept, node)) return true;", "false"),
    _one("cse-later-written", "cse: the storage the later node makes is never written", CSE, "if («makes_written_storage(node)») {", "false"),
    _one("cse-kept-changes", "cse: the metadata of the first tensor does not change in place", CSE, "makes_written_storage(kept) || «changes_in_place(kept, node)»", "false"),
    _one("cse-later-changes", "cse: the metadata of the later tensor does not change in place", CSE, "} else if («changes_in_place(node, kept)») {", "false"),
    _one("cse-both-returned", "cse: not both storages are returned", CSE, "} else if («are_both_returned(kept, node)») {", "false"),
    _one("cse-differentiated", "cse: no gradient flows through the two when autograd runs through the graph", CSE, "} else if («reached_.get(node) && !are_one_tensor(kept, node)») {", "false"),
    _one("cse-operands", "cse: no op that writes is given both", CSE, "} else if («operands_.has_both(node, kept)») {", "false"),
    Planted(
        "cse-stands-for-returned",
        "cse: what stands for a returned storage or tensor is returned",
        (
            Edit(CSE, "{ if («makes_returned_storage(node)») { for", "false"),
            Edit(CSE, "if («!is_returned(node)») return; for", "true"),
        ),
    ),
    _one("dce-random", "dce: a random op without recorded draws is visible", DCE, "return «is_kept_random(node, effects)» || is_kept_collective(node, effects);", "false"),
    _one("dce-collectives", "dce: a wait or a collective is visible", DCE, "return is_kept_random(node, effects) || «is_kept_collective(node, effects)»;", "false"),
    _one("dce-assertions", "dce: an assertion is visible", DCE, "if («has_effect(effects, Effect::kAsserts) && options_.assertions == DeadPolicy::kKeep») return true;", "false"),
    _one("dce-opaque", "dce: what is opaque is visible", DCE, "if (has_effect(effects, «Effect::kOpaque | Effect::kBarrier»)) return true;", "Effect::kBarrier"),
    _one("dce-callers-memory", "dce: a write to memory of the caller is seen", DCE, "return «storages_->is_external(buffer)» || read_later_", "false"),
    _one("dce-read-later", "dce: a write to memory a live node reads later is seen", DCE, "storages_->is_external(buffer) || «read_later_[storages_->alias_class(buffer)]»;", "false"),
    _one("dce-classes", "dce: a write counts for the memory behind all views that may alias it", DCE, "if (buffer.is_valid()) read_later_[«storages_->alias_class(buffer)»] = true;", "buffer"),
    _one("canonicalize-metadata", "canonicalize: the same strides, offset and dtype, not only sizes", CANONICALIZE, "return «same_metadata(graph_.module(), *one, *other)»;", "one->sizes == other->sizes"),
    _one("canonicalize-storage", "canonicalize: the two are on one storage", CANONICALIZE, "if («!same_buffer(view, link)») break;", "false"),
    _one("canonicalize-view-changes", "canonicalize: no in-place op changes the view's sizes later", CANONICALIZE, "} else if («storages_.metadata_changes_after(view)» || ", "false"),
    _one("canonicalize-base-changes", "canonicalize: no in-place op changes the base's sizes later", CANONICALIZE, "|| «storages_.metadata_changes_after(base)») {", "false"),
    _one("canonicalize-way-changes", "canonicalize: nor those of a view on the way", CANONICALIZE, "|| «storages_.metadata_changes_after(link)») return false;", "false"),
    _one("canonicalize-detach", "canonicalize: where autograd may run through, a detach stays", CANONICALIZE, "} else if («stops_gradients(view, base)») {", "false"),
    _one("canonicalize-modes", "canonicalize: a view is replaced only by what was made under the same gradient mode", CANONICALIZE, "made_by.is_valid() && «modes_.of(view) == modes_.of(made_by)»;", "true"),
    _one("canonicalize-maker", "canonicalize: the mode asked is that of the call that made the tensor", CANONICALIZE, "const NodeId made_by = «maker(base)»;", "base"),
    _one("canonicalize-operands", "canonicalize: no op that writes is given a view and what stands for it", CANONICALIZE, "} else if («operands_.has_both(view, base)») {", "false"),
    _one("canonicalize-returned", "canonicalize: the caller is not handed an input, nor one output twice", CANONICALIZE, "} else if («is_needed_by_caller(view, base)») {", "false"),
    _one("canonicalize-stands-for-returned", "canonicalize: what stands for a returned view, or for an input, is one that the caller has", CANONICALIZE, "if («known_.get(one)») known_[other] = true;", "false"),
    _one("canonicalize-transpose", "canonicalize: unrecorded, only a transpose of a transpose is its base", CANONICALIZE, "«graph_.op(inner).name == kTranspose» &&", "true"),
    _one("canonicalize-slice", "canonicalize: unrecorded, only a slice of everything is its base", CANONICALIZE, "|| «!is_default(call_argument(graph, view, 4), 1)») return false;", "false"),
    _one("raise-getitems-tensor", "raise-getitems: a getitem of a tensor stays", RAISE, "|| «view_of_call(graph_, node) != ViewKind::kProjection») continue;", "graph_.op(node).view != ViewKind::kProjection"),
    _one("raise-getitems-metadata", "raise-getitems: unrecorded, a getitem stays after what changes sizes of its input", RAISE, "if («!facts_.storages().input_metadata_changes(node, parent, node)») return true;", "true"),
    _one("remat-random", "remat: a copy repeats no draw from an unrecorded slot", TAGS, "if («has_effect(effects, Effect::kRandom)») {", "false"),
    _one("remat-writes", "remat: a copy repeats no write", TAGS, "if («has_effect(effects, Effect::kMutates)») return", "false"),
    _one("remat-reads-written", "remat: nothing writes what it reads between the original and the copy", REPEAT, "if («storages_->input_bytes_change(node, node, consumer)») return", "false"),
    _one("remat-result-written", "remat: nothing writes the original's own result", REPEAT, "if («is_written_later(node)») return", "false"),
    _one("remat-returned", "remat: of several tensors on its memory that the caller is handed, backward made none", REPEAT, "if («returned_by_backward_.get(memory) && returned_.get(memory) > 1») return", "false"),
    _one("set-moves", "all: set_ puts a tensor on other memory", TABLE, "op.moves_storage = «row.extra.moves_storage»;", "false"),
    _one("set-joins", "all: the memory before set_ and the one after are one class", STORAGES, "if («from[0].buffer.is_valid()») join(parents_, from[0].buffer, buffer);", "false"),
    _one("sizes-change", "all: t_, resize_ and others change sizes in place", TABLE, "op.changes_metadata = «row.extra.changes_metadata»;", "false"),
    _one("out-sizes", "all: out= may resize what it is given", EFFECTS, "return «is_as_left(graph, node, position, arg->as_node())»", "is_out || is_as_left(graph, node, position, arg->as_node())"),
    _one("same-object", "all: an in-place op hands back the object it was given", STORAGES, "if (view_ == ViewKind::kIdentity) return «base.object»;", "make_object()"),
    _one("may-alias", "all: what may be a view may alias its input", STORAGES, "if («answer == ViewAnswer::kUnknown») join(parents_, base.buffer", "false"),
    _one("schema-aliases", "all: a result aliases the argument that the schema names", STORAGES, "if («op.schema.has_value()») alias_by_schema(node, op);", "false"),
    _one("inputs-alias", "all: inputs on one storage share memory", STORAGES, "const Held shared = «carried.is_valid() ? placeholders_.get(carried) : Held()»;", "Held()"),
    _one("subgraphs", "all: a call has the effects of the graphs it runs", EFFECT_MAP, "return effects | «inner»;", "Effect::kNone"),
    _one("statistics", "all: batch norm in training writes its statistics", EFFECTS, "!training->is(ArgKind::kBool) || «training->as_bool()»;", "false"),
)  # fmt: skip
