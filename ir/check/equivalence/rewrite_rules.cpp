#include "ir/check/equivalence/rewrite_rules.h"

#include <algorithm>
#include <span>

#include "ir/alias/rank_order.h"
#include "ir/graph/module.h"
#include "ir/values/call_args.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

// Whether the elements are exactly the stored bytes.
bool is_plain(const Geometry& geometry) {
  return geometry.layout == Layout::kStrided && !geometry.conjugate && !geometry.negative;
}

}  // namespace

void NamedTotal::add(const Hash128& name) {
  const Hash128 mixed = make_key(KeyKind::kSummed, name);
  sum = {sum.high + mixed.high, sum.low + mixed.low};
  ++count;
}
void NamedTotal::add(const NamedTotal& other) {
  sum = {sum.high + other.sum.high, sum.low + other.sum.low};
  count += other.count;
}
Hash128 NamedTotal::name(bool is_pending) const { return make_key(KeyKind::kSummed, is_pending, sum, count); }

RewriteRules::RewriteRules(const Graph& graph, ModuleKeys& keys, CallRules& rules, GeometryTable& geometries,
                           NamedMemory& memory, NamedValues& values, bool is_differentiated,
                           const std::vector<Claim>* claims)
    : graph_(graph),
      module_(graph.module()),
      keys_(keys),
      rules_(rules),
      geometries_(geometries),
      memory_(memory),
      values_(values),
      is_differentiated_(is_differentiated) {
  if (claims == nullptr) return;
  for (const Claim& claim : *claims) {
    if (claim.graph == module_.text(graph.name())) claims_.emplace(claim.uid, claim.rule);
  }
}

bool RewriteRules::issue(const Call& call, const Hash128& group, const Hash128& ranks, const Hash128& world) {
  const bool is_counted = issue_as_claimed(call, group, ranks, world);
  for (const uint32_t object : call.made) {
    const uint32_t storage = memory_.object(object).storage;
    issued_[storage] = memory_.all_of(storage);
  }
  return is_counted;
}

bool RewriteRules::issue_as_claimed(const Call& call, const Hash128& group, const Hash128& ranks,
                                    const Hash128& world) {
  const auto claim = claims_.find(graph_[call.node].uid);
  if (claim == claims_.end() || claim->second == RewriteRule::kPart || claim->second == RewriteRule::kOwnShard) {
    note_gather(call);
    return false;
  }
  if (claim->second == RewriteRule::kBucket) note_gather(call);  // a later node may slice its shard out of the result
  std::string why = "the process group of the collective is not known";
  if (group != Hash128()) {
    why = claim->second == RewriteRule::kGathers           ? issue_as_gathers(call, world)
          : claim->second == RewriteRule::kAddedReductions ? issue_as_sum(call, group, ranks, world)
                                                           : issue_as_members(call, claim->second, group, ranks, world);
  }
  if (!why.empty()) refused_.push_back({call.node, claim->second, why});
  return why.empty();
}

void RewriteRules::forget(uint32_t storage) {
  for (const uint32_t each : {storage, memory_.holder_of(storage)}) {
    gathered_.erase(each);
    bucketed_.erase(each);
    reduced_.erase(each);
  }
}

void RewriteRules::end_filling(uint32_t storage, const Hash128& pending, const Hash128& own_name,
                               std::vector<Hash128>& waits) {
  // The operand or the result was written while the collective ran, so no rule applies to the
  // result.
  if (const auto issued = issued_.find(storage); issued != issued_.end() && issued->second != memory_.all_of(storage)) {
    forget(storage);
  }
  const auto reduced = reduced_.find(storage);
  memory_.end_filling(storage, reduced == reduced_.end() ? own_name : reduced->second.total.name(false));
  const Hash128 filled = memory_.all_of(storage);
  if (auto found = gathered_.find(storage); found != gathered_.end()) found.value().filled = filled;
  if (auto found = bucketed_.find(storage); found != bucketed_.end()) {
    found.value().filled = filled;
  } else if (reduced != reduced_.end()) {
    reduced.value().filled = filled;
  } else {
    waits.push_back(pending);
    return;
  }
  add_pending(storage, waits);
}

void RewriteRules::add_pending(uint32_t storage, std::vector<Hash128>& pending) const {
  if (const auto found = bucketed_.find(storage); found != bucketed_.end()) {
    for (const SideBySide::Part& part : found->second.buffer.parts) pending.push_back(part.name);
  } else if (const auto reduced = reduced_.find(storage); reduced != reduced_.end()) {
    pending.insert(pending.end(), reduced->second.members.begin(), reduced->second.members.end());
  } else {
    pending.push_back(memory_.all_of(storage));
  }
}

void RewriteRules::apply(const Call& call) {
  const auto claim = claims_.find(graph_[call.node].uid);
  if (claim == claims_.end()) return;
  const bool is_collective = graph_.op(call.node).has(Effect::kCollective);
  std::string why;
  if (claim->second == RewriteRule::kPart) {
    why = name_by_part(call.node);
  } else if (claim->second == RewriteRule::kOwnShard) {
    why = name_by_shard(call);
  } else if (is_collective) {  // issue() applies the rule to the collective itself
    return;
  } else if (claim->second == RewriteRule::kAddedReductions) {
    why = name_by_sum(call);
  } else {
    why = name_by_bucket(call);
  }
  if (!why.empty()) refused_.push_back({call.node, claim->second, why});
}

void RewriteRules::note_copy(const Hash128& placed, uint32_t source) {
  if (has_claims()) sources_.emplace(placed, Source{memory_.data_key(source), memory_.object(source).geometry});
}

void RewriteRules::note_cat(const Call& call) {
  note_rows(call);
  note_parts(call);
}

// Returns the reduction that the collective names, or null.
const Arg* RewriteRules::reduce_op_of(NodeId node) const {
  if (!graph_.op(node).schema.has_value()) return nullptr;
  const Arg* arg = CallArgs(graph_, node).named("reduce_op").given();
  return arg != nullptr && arg->is(ArgKind::kString) ? arg : nullptr;
}

void RewriteRules::note_sent(uint32_t object) {
  sent_.reset();
  if (memory_.is_certain(memory_.object(object).storage)) sent_ = copied_to(object);
}

// Whether the call is a row-major copy. With the memory format `preserve`, the copy is row-major if
// no stride of the operand is larger than the stride of an earlier dimension.
bool RewriteRules::copies_row_by_row(const Call& call) {
  if (rules_.of(graph_, call.node).special != CallRule::Special::kClone || call.given.size() != 1) return false;
  const CallArg format = CallArgs(graph_, call.node)[1];
  if (format.as_memory_format() == MemoryFormat::kContiguous) return true;
  if (!format.is_absent() && format.as_memory_format() != MemoryFormat::kPreserve) return false;
  const Geometry* from = memory_.known_geometry(call.given[0]);
  if (from == nullptr) return false;
  int64_t last = INT64_MAX;
  for (size_t i = 0; i < from->rank(); ++i) {
    if (from->sizes[i].is(1)) continue;
    if (!from->strides[i].is_static() || from->strides[i].value() > last || from->strides[i].value() < 1) return false;
    last = from->strides[i].value();
  }
  return true;
}

// Applies RewriteRule::kPart. Returns the reason if the rule does not hold.
std::string RewriteRules::name_by_part(NodeId node) {
  if (is_differentiated_) return "autograd may run through the graph, and the slice has its own history";
  const Cell* cell = values_.find_tensor(node);
  if (cell == nullptr) return "the value is not a tensor";
  const uint32_t object = cell->first;
  const uint32_t storage = memory_.object(object).storage;
  if (!memory_.is_certain(storage)) {
    return "a collective is filling the memory of the value, or a possible alias was written";
  }
  if (!memory_.byte_range(object).has_value()) return "the sizes of the value are not known";
  const std::optional<Source> source = copied_to(object);
  if (!source.has_value()) return "no tensor was copied to exactly the bytes of the value";
  const std::string why = check_part(*memory_.known_geometry(object), *geometries_.find(source->geometry));
  if (!why.empty()) return why;
  stand_for(node, object, source->data, source->geometry);
  return "";
}

// Gives the node's value the hash `data` on a new storage. The new storage may be the real storage.
// A write to either storage therefore makes the other storage uncertain.
void RewriteRules::stand_for(NodeId node, uint32_t object, const Hash128& data, GeometryId geometry) {
  const uint32_t part = memory_.make_storage(data);
  memory_.storage(part).holder = memory_.holder_of(memory_.object(object).storage) + 1;
  const uint32_t named = memory_.make_object(part, geometry);
  memory_.join_objects(object, named);
  values_.give(node, NamedValues::tensor(named));
}

// Records the tensors that a `cat` puts side by side in each row of its result. A cat of vectors
// along dimension 0 has one row. A cat of matrices along dimension 1 has as many rows as the
// matrices.
void RewriteRules::note_rows(const Call& call) {
  const std::vector<uint32_t>&given = call.given, &made = call.made;
  const Geometry* to = made.size() == 1 ? memory_.known_geometry(made[0]) : nullptr;
  const SymInt along = CallArgs(graph_, call.node)[1].sym_int(integers()).value_or(SymInt(-1));
  if (to == nullptr || to->rank() < 1 || to->rank() > 2 || !along.is(static_cast<int64_t>(to->rank()) - 1)) return;
  if (!is_row_major(*to) || !to->offset.is(0)) return;
  SideBySide rows;
  rows.dtype = to->dtype;
  if (to->rank() == 2) {
    if (!to->sizes[0].is_static() || to->sizes[0].value() < 1) return;
    rows.rows = to->sizes[0].value();
  }
  for (const uint32_t object : given) {
    const Geometry* from = memory_.known_geometry(object);
    const std::optional<Hash128> elements = memory_.elements_key(object, *to);
    const bool fits = from != nullptr && elements.has_value() && from->rank() == to->rank() &&
                      from->sizes.back().is_static() && (from->rank() == 1 || from->sizes[0] == to->sizes[0]);
    if (!fits) return;
    rows.parts.push_back({*elements, from->sizes.back().value(), data_of_all(object)});
  }
  if (!to->sizes.back().is(rows.width())) return;
  rows_.emplace(memory_.data_key(made[0]), std::move(rows));
}

// Applies RewriteRule::kBucket or RewriteRule::kBucketedReduction to a collective. Each operand is
// a concatenation of members. The collective is recorded as one call for each member. Returns the
// reason if the rule does not hold.
std::string RewriteRules::issue_as_members(const Call& call, RewriteRule rule, const Hash128& group,
                                           const Hash128& ranks, const Hash128& world) {
  if (is_differentiated_) return "autograd may run through the graph";
  const std::vector<uint32_t>&given = call.given, &made = call.made;
  const Op& op = graph_.op(call.node);
  const CollectiveKind kind = collective_kind(op);
  const bool is_gather = kind == CollectiveKind::kAllGather;
  const bool is_scatter = kind == CollectiveKind::kReduceScatter;
  if (is_gather != (rule == RewriteRule::kBucket) ||
      (!is_gather && !is_scatter && kind != CollectiveKind::kAllReduce)) {
    return "the rewrite rule is for another kind of collective";
  }
  const bool is_out = is_gather && op.writes.size() == 1 && given.size() == 2 && made.size() == 1;
  if (!is_out && (!op.writes.empty() || given.size() != made.size() || made.empty())) {
    return "the collective does not return one tensor for each operand";
  }
  words_.clear();
  words_.add_all(key_tag(KeyKind::kMember, static_cast<uint64_t>(kind)), group, ranks, world);
  if (const Arg* reduce_op = reduce_op_of(call.node); reduce_op != nullptr)
    words_.add(keys_.text(reduce_op->as_string()));
  const size_t size = words_.size();
  std::vector<SideBySide> buckets;
  for (size_t i = 0; i < made.size(); ++i) {
    std::string why;
    buckets.push_back(members_given(call.node, kind, given[i], made[i], is_out, why));
    if (!why.empty()) return why;
  }
  for (size_t i = 0; i < made.size(); ++i) {
    for (SideBySide::Part& part : buckets[i].parts) {
      words_.cut(size);
      words_.add_all(static_cast<uint64_t>(buckets[i].rows), part.name, static_cast<uint64_t>(part.width));
      part.name = make_key(words_.all());
      members_[group].push_back(part.name);
    }
    bucketed_[memory_.object(made[i]).storage] = {std::move(buckets[i]), Hash128()};
  }
  return "";
}

// Returns the tensors that are concatenated in the operand `given`, with the hashes of the
// operand's elements. The returned rows are the rows of the result `made`. If the rule does not
// hold, sets `why` to the reason.
SideBySide RewriteRules::members_given(NodeId node, CollectiveKind kind, uint32_t given, uint32_t made, bool is_out,
                                       std::string& why) {
  SideBySide bucket;
  if (memory_.storage(memory_.object(made).storage).is_pending) {
    why = "another collective is already filling the result";
    return bucket;
  }
  const bool is_gather = kind == CollectiveKind::kAllGather, is_scatter = kind == CollectiveKind::kReduceScatter;
  const Geometry* from = memory_.known_geometry(given);
  const Geometry* to = memory_.known_geometry(made);
  std::optional<Hash128> elements = from == nullptr ? std::nullopt : memory_.elements_key(given, *from);
  if (to == nullptr || !elements.has_value() || !is_plain(*from) || !is_plain(*to) || !is_row_major(*to) ||
      !to->offset.is(0) || from->dtype != to->dtype) {
    why = "the operand or the result is not row-major, or the two dtypes differ";
    return bucket;
  }
  bucket.dtype = to->dtype;
  const SymInt count = from->num_elements(), made_count = to->num_elements();
  if (!count.is_static() || !made_count.is_static() || count.value() < 1 || made_count.value() < 1) {
    why = "the sizes of the operand or of the result are not known";
    return bucket;
  }
  const int64_t more = is_gather ? made_count.value() : count.value();
  const int64_t less = is_gather ? count.value() : made_count.value();
  if (more % less != 0 || (!is_gather && !is_scatter && more != less)) {
    why = "the sizes of the operand and of the result do not match";
    return bucket;
  }
  const int64_t ranks = more / less;
  Hash128 data = data_of_all(given);
  if (is_out) {
    why = check_place(node, given, made, *from, count.value());
    if (!why.empty()) return bucket;
    if (sent_.has_value()) {
      const Geometry& geometry = *geometries_.find(sent_->geometry);
      elements = NamedMemory::elements_key(sent_->data, geometry);
      data = geometry.offset.is(0) ? sent_->data : Hash128();
    } else if (memory_.may_share(given, made)) {
      why = "no tensor is known to be copied to this rank's place in the result";
      return bucket;
    }
  }
  bucket.rows = is_scatter ? ranks : 1;
  bucket.parts.push_back({*elements, count.value() / bucket.rows, data});
  if (!open_parts(bucket)) why = "more than " + std::to_string(kMostParts) + " tensors are concatenated in the operand";
  bucket.rows = is_gather ? ranks : 1;
  return bucket;
}

// Returns the content that a tensor shows, if the tensor starts at offset 0 of its storage.
// Otherwise returns zero.
Hash128 RewriteRules::data_of_all(uint32_t object) {
  const Geometry* geometry = memory_.known_geometry(object);
  return geometry != nullptr && geometry->offset.is(0) ? memory_.data_key(object) : Hash128();
}

// Replaces each part by the tensors that are concatenated in it, if these have the same dtype and
// number of rows. Returns false if there are more than kMostParts parts.
bool RewriteRules::open_parts(SideBySide& bucket) const {
  std::vector<SideBySide::Part> open(bucket.parts.rbegin(), bucket.parts.rend()), found;
  while (!open.empty()) {
    if (open.size() + found.size() > kMostParts) return false;
    const SideBySide::Part part = open.back();
    open.pop_back();
    const auto inside = part.data == Hash128() ? rows_.end() : rows_.find(part.data);
    const bool fits = inside != rows_.end() && inside->second.rows == bucket.rows &&
                      inside->second.dtype == bucket.dtype && inside->second.width() == part.width;
    if (fits) {
      open.insert(open.end(), inside->second.parts.rbegin(), inside->second.parts.rend());
    } else {
      found.push_back(part);
    }
  }
  bucket.parts = std::move(found);
  return true;
}

// The output buffer of a gather may contain the operand. The operand must then be at this rank's
// place, because any other place is overwritten while the operand is read. Returns the reason if
// the operand is elsewhere.
std::string RewriteRules::check_place(NodeId node, uint32_t given, uint32_t made, const Geometry& from, int64_t count) {
  const uint32_t storage = memory_.holder_of(memory_.object(made).storage);
  if (!memory_.may_share(given, made)) return "";
  const ProcessGroup* group = find_group(module_, group_of_call(graph_, node).uid);
  if (memory_.holder_of(memory_.object(given).storage) != storage || group == nullptr ||
      !is_own_place(module_, group->ranks, from.offset, count)) {
    return "the operand may share memory with the result, but is not at this rank's place in the result";
  }
  return "";
}

// Returns the one tensor that was copied to exactly the bytes of the object.
std::optional<RewriteRules::Source> RewriteRules::copied_to(uint32_t object) {
  const std::optional<Hash128> placed = memory_.exactly(object);
  const auto source = placed.has_value() ? sources_.find(*placed) : sources_.end();
  if (source == sources_.end()) return std::nullopt;
  return source->second;
}

// Applies RewriteRule::kBucket or RewriteRule::kBucketedReduction to a slice of the collective's
// result. A row-major copy of a slice is treated like the slice. Returns the reason if the rule
// does not hold.
std::string RewriteRules::name_by_bucket(const Call& call) {
  const Cell* cell = values_.find_tensor(call.node);
  if (cell == nullptr) return "the value is not a tensor";
  const uint32_t object = cell->first;
  const uint32_t seen = copies_row_by_row(call) ? call.given[0] : object;
  if (is_named_by_rule(seen)) return "a rewrite rule was already applied to the tensor of this slice";
  const uint32_t storage = memory_.holder_of(memory_.object(seen).storage);
  const auto found = bucketed_.find(storage);
  if (found == bucketed_.end()) return "the value is not a slice of the result of a bucketed collective";
  if (!memory_.is_certain(storage) || memory_.all_of(storage) != found->second.filled) {
    return "no wait has completed the collective, or the result was written afterwards";
  }
  const Geometry* geometry = memory_.known_geometry(seen);
  if (geometry == nullptr) return "the sizes of the value are not known";
  const std::optional<std::vector<SideBySide::Part>> parts = parts_seen(found->second.buffer, *geometry);
  if (!parts.has_value()) return "the slice does not consist of whole tensors of the result";
  if (memory_.known_geometry(object) == nullptr) return "the sizes of the value are not known";
  Geometry own = *memory_.known_geometry(object);
  if (!is_row_major(own) || !is_plain(own) || !is_plain(*geometry) || own.dtype != geometry->dtype ||
      (seen != object && own.sizes != geometry->sizes)) {
    return "the value is not row-major, or differs from the slice in sizes or dtype";
  }
  words_.clear();
  words_.add(key_tag(KeyKind::kMember));
  for (const SideBySide::Part& part : *parts) words_.add(part.name);
  own.offset = SymInt(0);
  own.strides = row_major_strides(own.sizes);
  stand_for(call.node, object, make_key(words_.all()), geometries_.add(own));
  return "";
}

// Returns the operand and the result of a collective that has one of each. If a condition fails,
// sets `why` to the reason.
std::optional<RewriteRules::Single> RewriteRules::single(const Call& call, std::string& why) {
  if (is_differentiated_) {
    why = "autograd may run through the graph";
  } else if (call.given.size() != 1 || call.made.size() != 1 || !graph_.op(call.node).writes.empty()) {
    why = "the collective does not return one new tensor for one operand";
  } else {
    const Geometry* from = memory_.known_geometry(call.given[0]);
    const Geometry* to = memory_.known_geometry(call.made[0]);
    const std::optional<Hash128> elements =
        from == nullptr || to == nullptr ? std::nullopt : memory_.elements_key(call.given[0], *to);
    const bool is_laid_out = elements.has_value() && is_row_major(*to) && to->offset.is(0) && is_plain(*to);
    if (is_laid_out) return Single{from, to, *elements};
    why = "the operand or the result is not row-major";
  }
  return std::nullopt;
}

// Records the layout of an all-gather's result, for RewriteRule::kGathers and
// RewriteRule::kOwnShard. Returns the reason if the layout is unknown.
std::string RewriteRules::note_gather(const Call& call) {
  std::string why;
  if (collective_kind(graph_.op(call.node)) != CollectiveKind::kAllGather) return "the call is not an all-gather";
  const std::optional<Single> one = single(call, why);
  if (!one.has_value()) return why;
  const ProcessGroup* group = find_group(module_, group_of_call(graph_, call.node).uid);
  if (group == nullptr || group->ranks.empty()) return "the file does not list the process group of the collective";
  const SymInt count = one->from->num_elements(), made_count = one->to->num_elements();
  if (!count.is_static() || !made_count.is_static() || count.value() < 1 || made_count.value() % count.value() != 0 ||
      made_count.value() / count.value() != static_cast<int64_t>(group->ranks.size())) {
    return "the sizes are not known, or do not match the number of ranks";
  }
  GatherResult result;
  const uint32_t given = call.given[0];
  const Source source = {memory_.data_key(given), memory_.object(given).geometry};
  result.levels.push_back({group->ranks, one->elements, source, count.value()});
  if (const GatherResult* inner = gathered_whole(given); inner != nullptr) {
    for (const Gathered& level : inner->levels) {
      std::optional<RankOrder> both = ranks_of_both(module_, level.ranks, group->ranks);
      if (!both.has_value()) break;
      result.levels.push_back({std::move(both->ranks), level.elements, level.source, level.count});
    }
  }
  gathered_[memory_.object(call.made[0]).storage] = std::move(result);
  return "";
}

// Returns the gather whose whole result the tensor shows, in the result's own layout.
const RewriteRules::GatherResult* RewriteRules::gathered_whole(uint32_t object) {
  const GatherResult* found = gathered_on(object);
  const Geometry* geometry = memory_.known_geometry(object);
  if (found == nullptr || geometry == nullptr || !is_row_major(*geometry) || !geometry->offset.is(0) ||
      !is_plain(*geometry) || geometry->dtype != geometries_.find(found->levels[0].source.geometry)->dtype) {
    return nullptr;
  }
  return geometry->num_elements().is(found->levels[0].count * static_cast<int64_t>(found->levels[0].ranks.size()))
             ? found
             : nullptr;
}
// Returns the gather whose result contains the tensor. Returns nullptr before the wait and after a
// write to the result.
const RewriteRules::GatherResult* RewriteRules::gathered_on(uint32_t object) {
  if (is_named_by_rule(object)) return nullptr;
  const uint32_t storage = memory_.holder_of(memory_.object(object).storage);
  const auto found = gathered_.find(storage);
  const bool is_there =
      found != gathered_.end() && memory_.is_certain(storage) && memory_.all_of(storage) == found->second.filled;
  return is_there ? &found->second : nullptr;
}

// Applies RewriteRule::kGathers to the collective. The value number of its result depends on the
// gathered data, but not on the number of earlier gathers.
std::string RewriteRules::issue_as_gathers(const Call& call, const Hash128& world) {
  const std::string why = note_gather(call);
  if (!why.empty()) return why;
  const uint32_t storage = memory_.object(call.made[0]).storage;
  const Gathered& result = gathered_.find(storage)->second.levels.back();
  const Hash128 ranks = make_key(std::vector<uint64_t>(result.ranks.begin(), result.ranks.end()));
  const Hash128 name = make_key(KeyKind::kGathered, ranks, world, result.elements, result.count);
  memory_.set_names(storage, name, name);
  members_[ranks].push_back(name);
  return "";
}

// Whether the call adds two tensors of the same sizes and dtype.
bool RewriteRules::adds_two(const Call& call) {
  if (graph_.op(call.node).name != "aten.add.Tensor" || CallArgs(graph_, call.node)[2].is_given() ||
      call.given.size() != 2 || call.made.size() != 1) {
    return false;
  }
  const Geometry* to = memory_.known_geometry(call.made[0]);
  return to != nullptr && std::ranges::all_of(call.given, [&](uint32_t object) {
           const Geometry* from = memory_.known_geometry(object);
           return from != nullptr && from->sizes == to->sizes && from->dtype == to->dtype;
         });
}

void RewriteRules::note_sum(const Call& call) {
  const Geometry* to = adds_two(call) ? memory_.known_geometry(call.made[0]) : nullptr;
  if (to == nullptr || !is_row_major(*to) || !to->offset.is(0) || !is_plain(*to)) return;
  Sum sum = {{}, to->dtype};
  for (size_t i = 0; i < sum.addends.size(); ++i) {
    const std::optional<Hash128> elements = memory_.elements_key(call.given[i], *to);
    if (!elements.has_value()) return;
    sum.addends[i] = {*elements, data_of_all(call.given[i])};
  }
  sums_.emplace(memory_.data_key(call.made[0]), sum);
}

// Returns the terms of the sum in a tensor of the type `dtype`. Empty if there are more than
// kMostParts terms.
std::vector<Hash128> RewriteRules::addends_of(const Addend& all, DType dtype) const {
  std::vector<Addend> open = {all};
  std::vector<Hash128> found;
  while (!open.empty()) {
    if (open.size() + found.size() > kMostParts) return {};
    const Addend one = open.back();
    open.pop_back();
    const auto inside = one.data == Hash128() ? sums_.end() : sums_.find(one.data);
    if (inside == sums_.end() || inside->second.dtype != dtype) {
      found.push_back(one.name);
    } else {
      open.insert(open.end(), inside->second.addends.begin(), inside->second.addends.end());
    }
  }
  return found;
}

// Applies RewriteRule::kAddedReductions to the collective. The value number of its result is a hash
// of the terms that are added on this rank and over all ranks.
std::string RewriteRules::issue_as_sum(const Call& call, const Hash128& group, const Hash128& ranks,
                                       const Hash128& world) {
  const Op& op = graph_.op(call.node);
  const CollectiveKind kind = collective_kind(op);
  if (kind != CollectiveKind::kReduceScatter && kind != CollectiveKind::kAllReduce)
    return "the call is not a reduction";
  std::string why;
  const std::optional<Single> one = single(call, why);
  if (!one.has_value()) return why;
  const SymInt count = one->from->num_elements();
  if (!count.is_static()) return "the sizes of the operand are not known";
  words_.clear();
  words_.add_all(key_tag(KeyKind::kSummed, static_cast<uint64_t>(kind)), group, ranks, world);
  for (const SymInt& size : one->to->sizes) words_.add(size.key());
  bool is_linear = false;
  if (const Arg* reduce_op = reduce_op_of(call.node); reduce_op != nullptr) {
    const std::string_view name = module_.text(reduce_op->as_string());
    // An average of integers drops the remainder.
    is_linear = name == "sum" || (name == "avg" && is_floating(one->from->dtype));
    words_.add(keys_.text(reduce_op->as_string()));
  }
  if (!is_linear) return "the reduction neither sums nor averages";
  std::vector<Hash128> members = addends_of({one->elements, data_of_all(call.given[0])}, one->from->dtype);
  if (members.empty()) return "the call adds more than " + std::to_string(kMostParts) + " tensors";
  const size_t size = words_.size();
  NamedTotal total;
  for (Hash128& member : members) {
    words_.cut(size);
    words_.add(member);
    member = make_key(words_.all());
    members_[group].push_back(member);
    total.add(member);
  }
  const uint32_t storage = memory_.object(call.made[0]).storage;
  memory_.set_names(storage, total.name(true), total.name(true));
  reduced_[storage] = {std::move(members), total, one->to->num_elements(), one->to->dtype, Hash128()};
  return "";
}

// Applies RewriteRule::kAddedReductions to an `add` of two reduced tensors.
std::string RewriteRules::name_by_sum(const Call& call) {
  if (!adds_two(call)) return "the call does not add two tensors of equal sizes";
  NamedTotal total;
  for (const uint32_t object : call.given) {
    const uint32_t storage = memory_.holder_of(memory_.object(object).storage);
    const auto found = reduced_.find(storage);
    const Geometry* geometry = memory_.known_geometry(object);
    if (found == reduced_.end() || is_named_by_rule(object) || !is_row_major(*geometry) || !geometry->offset.is(0) ||
        !is_plain(*geometry) || !(geometry->num_elements() == found->second.count) ||
        geometry->dtype != found->second.dtype) {
      return "an operand is not the whole result of a reduction that this rule covers";
    }
    if (!memory_.is_certain(storage) || memory_.all_of(storage) != found->second.filled) {
      return "no wait has completed one of the operands, or the operand was written afterwards";
    }
    total.add(found->second.total);
  }
  const uint32_t storage = memory_.object(call.made[0]).storage;
  memory_.set_names(storage, total.name(true), total.name(false));
  const Hash128 filled = memory_.all_of(storage);
  const Geometry& sum = *memory_.known_geometry(call.made[0]);
  reduced_[storage] = {{}, total, sum.num_elements(), sum.dtype, filled};
  return "";
}

// Applies RewriteRule::kOwnShard. Returns the reason if the rule does not hold.
std::string RewriteRules::name_by_shard(const Call& call) {
  const NodeId node = call.node;
  const Cell* cell = values_.find_tensor(node);
  if (cell == nullptr) return "the value is not a tensor";
  const uint32_t object = cell->first;
  if (rules_.of(graph_, node).special == CallRule::Special::kClone && call.given.size() == 1) {
    return copies_row_by_row(call) ? name_by_copied_shard(call, object) : "the value is not a row-major copy";
  }
  const GatherResult* result = gathered_on(object);
  const Geometry* geometry = memory_.known_geometry(object);
  if (result == nullptr || geometry == nullptr || !is_row_major(*geometry) || !is_plain(*geometry)) {
    return "the value is not a row-major slice of a gathered result after the wait";
  }
  const Gathered* gathered = nullptr;
  for (const Gathered& each : result->levels) {
    const bool is_own =
        geometry->num_elements().is(each.count) && is_own_place(module_, each.ranks, geometry->offset, each.count);
    if (is_own && gathered == nullptr) gathered = &each;
  }
  if (gathered == nullptr) return "the slice is not exactly this rank's shard";
  const Geometry& source = *geometries_.find(gathered->source.geometry);
  if (geometry->dtype != source.dtype || geometry->rest != source.rest)
    return "the dtype or device differs from that of the shard";
  Geometry own = source;
  if (own.sizes != geometry->sizes) {
    own.sizes = geometry->sizes;
    own.strides = row_major_strides(own.sizes);
  }
  const Hash128 data = gathered->source.data;
  const OwnPart part = {memory_.holder_of(memory_.object(object).storage), geometry->offset, own.offset, data};
  const bool is_outermost = gathered == &result->levels[0];
  stand_for(node, object, data, geometries_.add(own));
  if (is_outermost) own_parts_[memory_.object(values_.find_tensor(node)->first).storage] = part;
  return "";
}

// Records a `cat` that joins all parts of one gather along dimension 1 or later.
void RewriteRules::note_parts(const Call& call) {
  const std::vector<uint32_t>&given = call.given, &made = call.made;
  const Geometry* to = made.size() == 1 ? memory_.known_geometry(made[0]) : nullptr;
  const GatherResult* result = nullptr;
  for (const uint32_t object : given) {
    if (const std::optional<GatherPart> part = part_of_gather(object); part.has_value()) result = part->result;
  }
  if (to == nullptr || result == nullptr || !is_row_major(*to) || !to->offset.is(0)) return;
  const std::optional<SymInt> along = CallArgs(graph_, call.node)[1].sym_int(integers());
  const int64_t rank = static_cast<int64_t>(to->rank());
  if (!along.has_value() || !along->is_static()) return;
  const int64_t at = along->value() < 0 ? along->value() + rank : along->value();
  const Gathered& level = result->levels[0];
  if (at < 1 || at >= rank || given.size() != level.ranks.size()) return;
  std::vector<SymInt> sizes;
  for (size_t i = 0; i < given.size(); ++i) {
    const Geometry* geometry = memory_.known_geometry(given[i]);
    const std::optional<GatherPart> part = part_of_gather(given[i]);
    if (!part.has_value() || part->result != result || !part->offset.is(static_cast<int64_t>(i) * level.count)) return;
    if (i == 0) sizes = geometry->sizes;
    const bool is_whole = geometry->sizes == sizes && geometry->dtype == to->dtype && geometry->rest == to->rest &&
                          is_row_major(*geometry) && is_plain(*geometry) && geometry->num_elements().is(level.count);
    if (!is_whole) return;
  }
  const size_t place = static_cast<size_t>(at);
  const SymInt step = to->strides[place] * sizes[place];
  if (!step.is_static()) return;
  const uint32_t storage = memory_.holder_of(memory_.object(made[0]).storage);
  parts_[storage] = {level.ranks, level.source, sizes, to->strides, step.value(), memory_.all_of(storage)};
}

// Returns the position of a tensor in a gathered result. kOwnShard may already have given the
// tensor a new storage.
std::optional<RewriteRules::GatherPart> RewriteRules::part_of_gather(uint32_t object) {
  const Geometry* geometry = memory_.known_geometry(object);
  if (geometry == nullptr) return std::nullopt;
  if (const GatherResult* result = gathered_on(object); result != nullptr) return GatherPart{result, geometry->offset};
  const uint32_t storage = memory_.object(object).storage;
  const auto found = own_parts_.find(storage);
  const bool is_it = found != own_parts_.end() && memory_.is_certain(storage) &&
                     memory_.data_key(object) == found->second.data && geometry->offset == found->second.named_offset;
  const auto gather = is_it ? gathered_.find(found->second.gather) : gathered_.end();
  if (gather == gathered_.end()) return std::nullopt;
  return GatherPart{&gather->second, found->second.offset};
}

// Applies RewriteRule::kOwnShard to a copy of the rank's shard, or to a copy of the rank's part of
// a `cat` that note_parts() recorded.
std::string RewriteRules::name_by_copied_shard(const Call& call, uint32_t object) {
  const uint32_t seen = call.given[0], storage = memory_.object(seen).storage;
  const Geometry* geometry = memory_.known_geometry(seen);
  const Geometry* made = memory_.known_geometry(object);
  if (is_differentiated_) return "autograd may run through the graph";
  if (geometry == nullptr || made == nullptr || !is_row_major(*made) || made->sizes != geometry->sizes ||
      made->dtype != geometry->dtype || made->rest != geometry->rest || !is_plain(*geometry) || !is_plain(*made) ||
      !memory_.is_certain(storage)) {
    return "the value is not a row-major copy of a tensor with known contents";
  }
  const auto found = parts_.find(storage);
  Hash128 data = memory_.data_key(seen);
  Geometry own = *geometry;
  Geometry wanted = *geometry;
  if (found != parts_.end()) wanted.strides = found->second.strides;
  if (found != parts_.end() && memory_.all_of(storage) == found->second.content &&
      geometry->sizes == found->second.sizes && same_geometry(*geometry, wanted) &&
      is_own_place(module_, found->second.ranks, geometry->offset, found->second.step)) {
    data = found->second.source.data;
    own = *geometries_.find(found->second.source.geometry);
    if (own.dtype != geometry->dtype || own.rest != geometry->rest || !is_plain(own)) {
      return "the dtype or device differs from that of the shard";
    }
  } else if (!is_row_major(own)) {
    return "the call does not copy exactly this rank's shard";
  }
  own.sizes = geometry->sizes;
  own.strides = row_major_strides(own.sizes);
  stand_for(call.node, object, make_key(KeyKind::kElements, data, 1), geometries_.add(own));
  return "";
}

}  // namespace fxopt
