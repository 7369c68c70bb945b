"""Mistakes to plant in a copy of fxopt: each turns off one legality rule of the passes' headers.

«...» is an expression that occurs once in the file. `instead` replaces it if that mistake is
selected.

Not planted, because no execution on one machine can show them: control dependencies, events and
streams (execution order), phases that are never mixed, tags, regions and the place of copies (when
memory is freed), equal results whose recorded symbols differ, a symbol's definition that nothing
reads as a value, offloads, and calls that a partitioner moves (tests/scripts/known_bugs_test.py).

CHOICES are mistakes in the saved set of `partition`, in its marks, in the order of its symbols, and
in rules that another rule backs up: the two graphs still compute correct results. They are found by
the cases of tests/cases and by partitions.py, which compares with PyTorch.
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
    rule: str  # the rule that no longer holds
    edits: tuple[Edit, ...]
    family: str | None = None  # the programs that can show it; None: all kinds
    passes: str | None = None  # the pipeline that can show it; None: all kinds


CSE, DCE = "passes/clean/cse.cpp", "passes/clean/dce.cpp"
CANONICALIZE, RAISE = "passes/clean/canonicalize.cpp", "passes/clean/raise_getitems.cpp"
REPEAT, TAGS = "ir/step/repeat.cpp", "ir/step/tag_rules.cpp"
STORAGES, EFFECTS, EFFECT_MAP = "ir/alias/storages.cpp", "ir/alias/effects.cpp", "ir/alias/effect_map.cpp"
TABLE = "ir/ops/table.cpp"
PARTITION, SPLIT, JOIN = "passes/partition/partition.cpp", "passes/partition/split.cpp", "passes/partition/join.cpp"
TRANSPLANT, NETWORK = "passes/partition/transplant.cpp", "passes/partition/save_network.h"
MIN_CUT, TORCH = "passes/partition/min_cut_choice.cpp", "passes/partition/torch_choice.cpp"
REPLAY, MARKS = "ir/step/replay.cpp", "ir/step/marks.cpp"
REPLACER, BUCKET_PLAN, GATHERS = "passes/pass/replacer.cpp", "passes/collective/bucket_plan.cpp", "passes/clean/gathers.cpp"
REMAT, REMAT_PLAN, VERDICTS = "passes/recompute/remat.cpp", "passes/recompute/remat_plan.cpp", "passes/recompute/verdicts.cpp"
ORDER = "passes/partition/backward_order.cpp"


def _one(name: str, rule: str, file: str, code: str, instead: str) -> Planted:
    return Planted(name, rule, (Edit(file, code, instead),))


def _cut(name: str, rule: str, file: str, code: str, instead: str, passes: str | None = None) -> Planted:
    """A mistake that joint graphs show, cut or joined."""
    return Planted(name, rule, (Edit(file, code, instead),), "joint", passes)


_PURE = "Effect allowed = «Effect::kHostSync | Effect::kNondeterministic»;"
_SET_BITS = "Effect::kHostSync | Effect::kNondeterministic | Effect::"
_SAME_ARGS = "if («one.kind() != other.kind()» || one.has_unknown() || other.has_unknown()) return false;"

PLANTED: tuple[Planted, ...] = (
    _one("cse-random", "cse: the op is pure: no random draw", CSE, _PURE, f"{_SET_BITS}kRandom"),
    _one("cse-writes", "cse: the op is pure: no write", CSE, _PURE, f"{_SET_BITS}kMutates"),
    _one("cse-collectives", "cse: no collective without its option", CSE, _PURE, f"{_SET_BITS}kCollective | Effect::kWaits"),
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
    _one("cse-reads-written", "cse: nothing writes the node's operands between the two", CSE, "return «storages_.input_bytes_change(kept, kept, node) || storages_.input_bytes_change(node, kept, node)»;", "false"),
    _one("cse-copies-read", "cse: only a view reads no data; a call that may be a view can be a copy", STORAGES, "[&](BufferId id) { return «buffer(id).producer == node»; });", "false"),
    Planted(
        "cse-input-metadata",
        "cse: nothing changes sizes, strides or storage of the node's operands between the two",
        (Edit(CSE, "if («storages_.input_metadata_changes(kept, kept, node) || storages_.input_metadata_changes(node, kept, node)») {", "false"),),
    ),
    _one("cse-kept-written", "cse: the storage of the first node's result is never written", CSE, "if («makes_written_storage(kept)» || changes_in_place(kept, node)) return true;", "false"),
    _one("cse-later-written", "cse: the storage of the later node's result is never written", CSE, "if («makes_written_storage(node)») return", "false"),
    _one("cse-kept-changes", "cse: the metadata of the first tensor does not change in place", CSE, "makes_written_storage(kept) || «changes_in_place(kept, node)»", "false"),
    _one("cse-later-changes", "cse: the metadata of the later tensor does not change in place", CSE, "if («changes_in_place(node, kept)») {", "false"),
    _one("cse-both-returned", "cse: not both storages are returned", CSE, "if («are_both_returned(kept, node)») return", "false"),
    _one("cse-differentiated", "cse: no gradient flows through the two when autograd runs through the graph", CSE, "if («reached_.get(node) && !are_one_tensor(kept, node)») {", "false"),
    _one("cse-operands", "cse: no op that writes takes both", CSE, "if («operands_.has_both(node, kept)») return", "false"),
    Planted(
        "cse-stands-for-returned",
        "cse: the replacement of a returned storage or tensor is returned",
        (
            Edit(CSE, "{ if («makes_returned_storage(node)») { for", "false"),
            Edit(CSE, "if («!is_returned(node)») return; for", "true"),
        ),
    ),
    _one("dce-random", "dce: a random op without recorded draws is visible", DCE, "return «is_kept_random(node, effects)» || is_kept_collective(node, effects);", "false"),
    _one("dce-collectives", "dce: a wait or a collective is visible", DCE, "return is_kept_random(node, effects) || «is_kept_collective(node, effects)»;", "false"),
    _one("dce-assertions", "dce: an assertion is visible", DCE, "if («has_effect(effects, Effect::kAsserts) && options_.assertions == DeadPolicy::kKeep») return true;", "false"),
    _one("dce-opaque", "dce: an opaque call is visible", DCE, "if (has_effect(effects, «Effect::kOpaque | Effect::kBarrier»)) return true;", "Effect::kBarrier"),
    _one("dce-callers-memory", "dce: a write to the caller's memory is visible", DCE, "return «storages_->is_external(buffer)» || read_later_", "false"),
    _one("dce-read-later", "dce: a write to memory that a live node reads later is visible", DCE, "storages_->is_external(buffer) || «read_later_[storages_->alias_class(buffer)]»;", "false"),
    _one("dce-classes", "dce: a write counts for the memory behind all views that may alias it", DCE, "if (buffer.is_valid()) read_later_[«storages_->alias_class(buffer)»] = true;", "buffer"),
    _one("canonicalize-metadata", "canonicalize: the same strides, offset and dtype, not only sizes", CANONICALIZE, "return «same_metadata(graph_.module(), *one, *other)»;", "one->sizes == other->sizes"),
    _one("canonicalize-storage", "canonicalize: the two are on one storage", CANONICALIZE, "if («!same_buffer(view, link)») break;", "false"),
    _one("canonicalize-view-changes", "canonicalize: no in-place op changes the view's sizes later", CANONICALIZE, "if («storages_.metadata_changes_after(view)» || ", "false"),
    _one("canonicalize-base-changes", "canonicalize: no in-place op changes the base's sizes later", CANONICALIZE, "|| «storages_.metadata_changes_after(base)») {", "false"),
    _one("canonicalize-way-changes", "canonicalize: no in-place op changes the sizes of a view in between", CANONICALIZE, "|| «storages_.metadata_changes_after(link)») return false;", "false"),
    _one("canonicalize-detach", "canonicalize: a detach stays if autograd may run through it", CANONICALIZE, "if («stops_gradients(view, base)») {", "false"),
    _one("canonicalize-modes", "canonicalize: a view and its replacement are made under the same gradient mode", CANONICALIZE, "made_by.is_valid() && «modes_.of(view) == modes_.of(made_by)»;", "true"),
    _one("canonicalize-maker", "canonicalize: the mode compared is that of the call that made the tensor", CANONICALIZE, "const NodeId made_by = «maker(base)»;", "base"),
    _one("canonicalize-operands", "canonicalize: no op that writes takes both a view and its replacement", CANONICALIZE, "if («operands_.has_both(view, base)») return", "false"),
    _one("canonicalize-returned", "canonicalize: the caller gets no input, and no output twice", CANONICALIZE, "if («is_needed_by_caller(view, base)») return", "false"),
    _one("canonicalize-stands-for-returned", "canonicalize: the caller has the replacement of a returned view or an input", CANONICALIZE, "if («known_.get(one)») known_[other] = true;", "false"),
    _one("canonicalize-transpose", "canonicalize: unrecorded, only a transpose of a transpose is its base", CANONICALIZE, "«graph_.op(inner).name == kTranspose» &&", "true"),
    _one("canonicalize-slice", "canonicalize: unrecorded, only a slice of the whole is its base", CANONICALIZE, "|| «!is_default(args[4], 1)») return false;", "false"),
    _one("raise-getitems-tensor", "raise-getitems: a getitem of a tensor stays", RAISE, "const NodeId whole = «whole_of(graph, node)»;", "graph[node].is_call() && graph.op(node).view == ViewKind::kProjection ? graph.arg(node, 0)->as_node() : NodeId()"),
    _one("raise-getitems-metadata", "raise-getitems: unrecorded, a getitem stays after an op that changes its input's sizes", RAISE, "if («!facts.storages().input_metadata_changes(node, parent, node)») return true;", "true"),
    _one("remat-random", "remat: a copy repeats no draw from an unrecorded slot", TAGS, "if («has_effect(effects, Effect::kRandom)») {", "false"),
    _one("remat-writes", "remat: a copy repeats no write", TAGS, "if («has_effect(effects, Effect::kMutates)») return", "false"),
    _one("remat-reads-written", "remat: nothing writes its operands between the original and the copy", REPEAT, "if («storages_->input_bytes_change(node, node, consumer)») return", "false"),
    _one("remat-result-written", "remat: nothing writes the original's own result", REPEAT, "if («is_written_later(node)») return", "false"),
    _one("remat-returned", "remat: backward makes none of several returned tensors on its memory", REPEAT, "if («returned_by_backward_.get(memory) && returned_.get(memory) > 1») return", "false"),
    _one("set-moves", "all: set_ puts a tensor on other memory", TABLE, "op.moves_storage = «row.extra.moves_storage»;", "false"),
    _one("set-joins", "all: the memory before set_ and the one after are one class", STORAGES, "if («from[0].buffer.is_valid()») join(parents_, from[0].buffer, buffer);", "false"),
    _one("sizes-change", "all: t_, resize_ and others change sizes in place", TABLE, "op.changes_metadata = «row.extra.changes_metadata»;", "false"),
    _one("out-sizes", "all: out= may resize its tensor", EFFECTS, "return «is_as_left(graph, node, position, arg.as_node())»", "is_out || is_as_left(graph, node, position, arg->as_node())"),
    _one("same-object", "all: an in-place op returns the object that it takes", STORAGES, "if (view_ == ViewKind::kIdentity) return «base.object»;", "make_object()"),
    _one("may-alias", "all: a result that may be a view may alias its input", STORAGES, "if («answer == ViewAnswer::kUnknown») join(parents_, base.buffer", "false"),
    _one("schema-aliases", "all: a result aliases the argument that the schema names", STORAGES, "if («op.schema.has_value()») alias_by_schema(node, op);", "false"),
    _one("inputs-alias", "all: inputs on one storage share memory", STORAGES, "const Held shared = «carried.is_valid() ? placeholders_.get(carried) : Held()»;", "Held()"),
    _one("subgraphs", "all: a call has the effects of the graphs it runs", EFFECT_MAP, "return effects | «inner»;", "Effect::kNone"),
    _one("statistics", "all: batch norm in training writes its statistics", EFFECTS, "return «CallArgs(graph, node)[static_cast<size_t>(op.training_arg)].as_bool() != false»;", "!CallArgs(graph, node)[static_cast<size_t>(op.training_arg)].as_bool().has_value()"),
    _cut("partition-order", "partition: forward may run before all of backward", SPLIT, "if («!found.has_value()») return std::nullopt;", "true"),
    _cut("partition-outputs", "partition: no forward output is one of backward", SPLIT, "if («!halves_.leaves[i].is_valid() || !halves_.in_backward[halves_.leaves[i]]») continue; return refused(graph_, halves_.leaves[i],", "true"),
    _cut("partition-runtime-writes", "partition: backward reads no input that the runtime writes before it", SPLIT, "const NodeId node = find_written_by_runtime(graph_, facts_.storages(), plan_.saved); if («!node.is_valid()») return std::nullopt;", "true"),
    _cut("partition-saved", "partition: a saved value is bound to its output", SPLIT, "backward.receive(plan.saved[i], «count + i»);", "count + (i + 1) % plan.saved.size()"),
    _cut("partition-symbols", "partition: a saved symbol is bound to its output", SPLIT, "backward.receive(plan.saved_symbols[i], «count + plan.saved.size() + i»);", "count + plan.saved.size() + (i + 1) % plan.saved_symbols.size()"),
    _cut("partition-bindings", "partition: the module's bindings agree with saved_from_output", SPLIT, "0U, «static_cast<uint32_t>(*spec->saved_from_output)», {}", "static_cast<uint32_t>(std::max<int64_t>(*spec->saved_from_output - 1, 0))"),
    _cut("partition-gradients", "partition: backward returns every gradient", SPLIT, "for (size_t i = «count»; i < backward.num_leaves(); ++i) backward.return_leaf(i);", "count + 1"),
    _cut("partition-forward-outputs", "partition: forward returns its outputs at their places", SPLIT, "++i) forward.return_leaf(«i»);", "plan.halves.num_forward_outputs - 1 - i"),
    _cut("partition-plans-again", "partition: the saved values are found again after copies are made", PARTITION, "if («is_changed») {", "false"),
    _cut("partition-kwargs", "partition: calls keep their keyword arguments", TRANSPLANT, "graph_.set_args(id, args, «kwargs»);", "ArgRange()"),
    _cut("partition-attributes", "partition: each of the two graphs reads the attributes that it names", SPLIT, "if («in_forward[node] || !in_backward[node]») plan_.forward.push_back(node);", "!in_backward[node]"),
    _cut("join-outputs", "join: backward takes the output that its binding names", JOIN, "given = step.runs[0].outputs[«input.place»];", "(input.place + 1) % step.runs[0].outputs.size()"),
    _cut("join-inputs", "join: a saved value is no input", JOIN, "if («!given_[i].is_valid()») joint_.move(second_.placeholders[i]);", "true"),
    _cut("join-saved", "join: a saved value is no output", JOIN, "return «Step::is_saved(forward_, output) || (first_.is_taken[output] && Step::is_for_later_run(forward_, output))»;", "false"),
    _cut("min-cut-repeats", "min-cut: a call that draws or writes is not recomputed", MIN_CUT, "return «why_unrepeatable(graph_, node, effects_).empty()» &&", "true", "partition{mode=min-cut}"),
    _cut("min-cut-decides", "min-cut: a value that the cut saves is not recomputed", MIN_CUT, "{Tag::kNone, «cut.is_after.get(node)», TagRule::kCut}", "true", "partition{mode=min-cut}"),
    _cut("min-cut-of-torch-repeats", "min-cut as PyTorch's: the result of a call that draws or writes is saved", TORCH, "if («reason.empty()») return;", "true", "partition{mode=min-cut,compat=torch}"),
    _cut("network-forbids", "min-cut: a value that must not be recomputed is not", NETWORK, "{ add(source_, in(value), «Arc::kNoLimit»); }", "0", "partition{mode=min-cut}"),
    _cut("network-cut", "min-cut: a value on the cut is saved, not recomputed", "passes/partition/save_network.cpp", "cut.is_after[node] = «found->is_sink_side[in(node)]»;", "found->is_sink_side[out(node)]", "partition{mode=min-cut}"),
    _cut("remat-legal", "remat: a copy that memory forbids is not made", REMAT_PLAN, "if («obstacle.rule == TagRule::kNone») return true;", "true"),
    _cut("remat-unrepeatable", "remat: a call that must be recomputed, but draws or writes, is an error", REMAT_PLAN, "if («!unrepeatable_.get(node).empty()») {", "false"),
    _cut("remat-place", "remat: a copy is placed before its first user", REMAT, "graph_.clone_node(original, «before», base, mapped_);", "graph_.next(before)"),
)  # fmt: skip

CHOICES: tuple[Planted, ...] = (
    _cut("replay-repeats", "save-all: a call that draws or writes without a mark is an error", REPLAY, "if («!reason.empty()») decisions_.unrepeatable.push_back({node, reason});", "false"),
    _cut("remat-runtime-writes", "remat: an input that the runtime writes is not read again by a copy in backward", REPEAT, "note(storages_->buffers(input), «std::numeric_limits<uint32_t>::max()»);", "0U"),
    Planted(
        "min-cut-cheap",
        "min-cut: a product is not recomputed",
        (
            Edit(MIN_CUT, "if («op.in(OpSet::kComputeIntensive) || op.has_subgraphs») return false;", "false"),
            Edit(MIN_CUT, "|| «op.view == ViewKind::kProjection»; }", "true"),
        ),
    ),
    _cut("min-cut-tags", "min-cut: a tag decides if there is one", MIN_CUT, "!phases_.is_backward(node) && «!is_told(decisions_.of.get(node))»;", "true"),
    _cut("min-cut-bytes", "min-cut: a value costs its bytes", MIN_CUT, "bytes = saturating_add(bytes, «bytes_of(id)»);", "1"),
    _cut("min-cut-parts", "min-cut: getitems follow the call that they are taken from", MIN_CUT, "if (!part.recompute || «!is_kept») continue;", "true"),
    _cut("network-feeds", "min-cut: a copy has its operands", NETWORK, "{ add(out(value), in(reader), «Arc::kNoLimit»); }", "0"),
    _cut("network-backward", "min-cut: backward has its own results", NETWORK, "{ add(in(value), sink_, «Arc::kNoLimit»); }", "0"),
    _cut("torch-weights", "min-cut as PyTorch's: a value that would be fused costs twice", TORCH, "return is_materialized(node) ? bytes : «2 * bytes»;", "bytes"),
    _cut("torch-static", "min-cut as PyTorch's: parameters are free to save", TORCH, "if («is_static(node)») return 0;", "false"),
    _cut("torch-reductions", "min-cut as PyTorch's: a result of less than a quarter of its operands' bytes is saved", TORCH, "return «made < given / 4 || (made == given / 4 && given % 4 != 0)»;", "false"),
    _cut("replay-parts", "mark-saved: only the saved results of a call with several are marked", MARKS, "add_part(graph, marked, mark, «*part», {});", "0"),
    _cut("replay-tags", "mark-saved: a saved value tagged for recompute becomes MUST_SAVE", PARTITION, "if («wants_recompute(graph[node].tag)») replace_tag(graph, node);", "false"),
    _cut("replay-must-save", "save-all: MUST_SAVE is saved in addition", REPLAY, "if (!is_marked && «graph_[node].tag == Tag::kMustSave» && !gives_way(node)) {", "false"),
    _cut("marks-moved", "a mark moves to the replacement of its node", REPLACER, "std::vector<std::string> names = effective_names(gone); if («names.empty()») return;", "true"),
    _cut("marks-policy", "a policy's MUST_RECOMPUTE gives way to a mark", TAGS, "if (own == Tag::kMustRecompute) return «is_policy_tag(graph_, node)»;", "false"),
    _cut("marks-preferences", "PREFER_RECOMPUTE wins over a mark unless prefer-recompute=loses", TAGS, "return own != Tag::kPreferRecompute || «!prefer_wins_»;", "true"),
    _cut("marks-copies", "copies that remat makes carry no mark", REMAT, "node.value = own_value(original); «strip_mark(graph_, id)»; add_origin", "void()"),
    _cut("marks-views", "canonicalize: a view that reads a saved value stays", CANONICALIZE, "if (are_decided_apart(graph_, phases_, view, base) || «passes_marked(view, base)» ||", "false"),
    _cut("marks-buckets", "bucket: marked gathers and others are in different buckets", BUCKET_PLAN, "node.tag, «is_marked(one)», module_of", "false"),
    _cut("gathers-across", "save-all: gathers of backward become only values that forward saves", GATHERS, "return !phases.is_backward(kept) && «is_saved.get(kept)»;", "false"),
    _cut("symbols-order", "partition: symbols come before values calculated from them", SPLIT, "(«name.is_valid()» ? bindings : calculated).push_back(node);", "false"),
    _cut("symbols-of-sizes", "partition: symbols that only sizes of backward's inputs hold are saved", SPLIT, "if («found != bound.end()») bindings.push_back(found->second);", "false"),
    _cut("order-peak", "partition: backward keeps its order if that has the lower peak", ORDER, "if («keeps_lower && before < peak_of(backward, facts)») {", "false"),
    _cut("remat-views", "remat: a view of a saved value is not copied", VERDICTS, "return buffer.producer != node && «is_kept»;", "false"),
    _cut("partition-backward-order", "partition: backward is ordered by all dependences, not by values alone", ORDER, "for (const Dependence& dependence : dependences_.of(node)) «open.push_back(dependence.on)»;", "dependence.why == DependenceKind::kValue ? open.push_back(dependence.on) : void()"),
)  # fmt: skip
