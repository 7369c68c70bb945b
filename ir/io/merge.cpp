#include "ir/io/merge.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/hash_table.h"
#include "ir/graph/graph.h"
#include "ir/io/fxg_print.h"
#include "ir/io/io.h"

namespace fxopt {
namespace {

template <class Record>
std::string text_of(const Module& module, const Record& record) {
  TextPrinter printer(module, {});
  printer.record(record);
  return printer.take();
}

class Merger {
 public:
  Merger(Module& into, Module& from, std::string file) : into_(into), from_(from), file_(std::move(file)) {}

  Status run() {
    if (const Status status = check_rank(); !status.ok()) return status;
    rename_graphs();
    rename_constants();
    const Result<std::string> bytes = print_pb(from_);
    if (!bytes.ok()) return bytes.error();
    const Heads heads = keep_heads();
    const size_t first_graph = into_.num_graphs(), first_erased = into_.erased.size();
    const auto first_run = static_cast<uint32_t>(into_.invocations.size());
    const uint64_t uid_base = into_.next_uid;
    if (const Status status = parse_pb_into(into_, *bytes, file_); !status.ok()) return status;
    restore(heads);
    shift_origins(first_graph, first_erased, uid_base);
    shift_bindings(first_run);
    return fold_all(heads);
  }

 private:
  // The singular fields of `into`, and the number of records of each kind.
  struct Heads {
    StringId name;
    std::optional<Producer> producer;
    std::optional<RankContext> rank;
    ArgRange meta;
    std::optional<std::string> profile, memory_plan;
    size_t symbols, assertions, groups, meshes, op_schemas, constants, rng_slots, streams;
  };

  Error disagree(const std::string& message) const {
    Error error{ErrorCode::kBadStep, message, "give files that were traced together", {}};
    error.where.file = file_;
    return error;
  }

  Status check_rank() const {
    if (!into_.rank.has_value() || !from_.rank.has_value()) return ok_status();
    const std::string own = text_of(into_, *into_.rank), other = text_of(from_, *from_.rank);
    return own == other ? ok_status() : disagree("the files are of different ranks: " + own + " and " + other);
  }

  void rename_graphs() {
    IdMap<StringId, StringId> names;
    std::unordered_map<std::string, size_t> last;  // the last suffix for each name
    for (const GraphId id : from_.graphs()) {
      const Graph& graph = from_.graph(id);
      if (!is_taken(from_.text(graph.name()))) continue;
      const bool is_part = graph.kind == GraphKind::kUnspecified || graph.kind == GraphKind::kSubgraph;
      const std::string base(is_part ? from_.text(graph.name()) : name_of(graph.kind));
      std::string name = base;
      while (is_taken(name) || from_.find_graph(from_.intern(name)).is_valid() || !last.try_emplace(name).second) {
        name = base + "_" + std::to_string(++last[base]);
      }
      names[graph.name()] = from_.intern(name);
    }
    from_.rename_graphs(names);
  }

  bool is_taken(std::string_view name) { return into_.find_graph(into_.intern(name)).is_valid(); }

  void rename_constants() {
    const ByName own = constants_of(into_), others = constants_of(from_);
    IdMap<StringId, StringId> names;
    for (Constant& constant : from_.constants) {
      const std::string base(from_.text(constant.name));
      const auto taken = own.find(base);
      if (taken == own.end() || is_same_constant(*taken->second, constant)) continue;
      std::string name = base;
      for (size_t i = 1; own.contains(name) || others.contains(name); ++i) name = base + "_" + std::to_string(i);
      names[constant.name] = from_.intern(name);
      constant.name = names[constant.name];
    }
    for (const GraphId id : from_.graphs()) {
      for (Attribute& attribute : from_.graph(id).attributes) {
        if (const StringId to = names.get(attribute.constant); to.is_valid()) attribute.constant = to;
      }
    }
  }

  // Compares inline data byte by byte, and data in another file by hash and key.
  bool is_same_constant(const Constant& a, const Constant& b) const {
    if (!is_same_tensor(a, b)) return false;
    if (a.inline_data.has_value() || b.inline_data.has_value()) return a.inline_data == b.inline_data;
    return a.xxh64.has_value() && a.xxh64 == b.xxh64 && into_.text(a.key) == from_.text(b.key);
  }

  bool is_same_tensor(const Constant& a, const Constant& b) const {
    if (a.tensor.is_valid() != b.tensor.is_valid()) return false;
    if (!a.tensor.is_valid()) return true;
    const Tensor& own = into_.pool.tensor(into_.pool.value(a.tensor));
    const Tensor& other = from_.pool.tensor(from_.pool.value(b.tensor));
    if (own.dtype != other.dtype || own.sizes.is_valid() != other.sizes.is_valid()) return false;
    if (!own.sizes.is_valid()) return true;
    const std::vector<Dim>& sizes = into_.dims(own.sizes);
    const std::vector<Dim>& others = from_.dims(other.sizes);
    return std::equal(sizes.begin(), sizes.end(), others.begin(), others.end(), [](const Dim& left, const Dim& right) {
      return left.is_static() && right.is_static() && left.value == right.value;
    });
  }

  using ByName = std::unordered_map<std::string, const Constant*>;
  static ByName constants_of(const Module& module) {
    ByName all;
    for (const Constant& each : module.constants) all.emplace(module.text(each.name), &each);
    return all;
  }

  Heads keep_heads() {
    return {into_.name,
            into_.producer,
            into_.rank,
            into_.meta,
            into_.profile,
            into_.memory_plan,
            into_.symbols.size(),
            into_.assertions.size(),
            into_.groups.size(),
            into_.meshes.size(),
            into_.op_schemas.size(),
            into_.constants.size(),
            into_.rng_slots.size(),
            into_.streams.size()};
  }

  void restore(const Heads& heads) {
    into_.name = heads.name;
    if (heads.producer.has_value()) into_.producer = heads.producer;
    if (heads.rank.has_value()) into_.rank = heads.rank;
    if (heads.meta.count > 0) into_.meta = heads.meta;
    into_.profile = heads.profile;
    into_.memory_plan = heads.memory_plan;
    into_.certificate.reset();  // it covers only one of the two modules
  }

  // Whether `graph` was a graph of `into` before the merge. An origin or an erased node of `from`
  // may refer to such a graph. The uid in the origin or erased node is then not shifted.
  bool is_of_other_file(StringId graph, size_t first_graph) const {
    const GraphId found = into_.find_graph(graph);
    return found.is_valid() && found.index() < first_graph;
  }

  void shift_origins(size_t first_graph, size_t first_erased, uint64_t base) {
    const auto shift = [&](std::vector<Origin>& origins) {
      for (Origin& origin : origins) {
        if (!is_of_other_file(origin.graph, first_graph)) origin.uid += base;
      }
    };
    for (size_t i = first_graph; i < into_.num_graphs(); ++i) {
      Graph& graph = into_.graph(into_.graphs()[i]);
      for (const NodeId node : graph.nodes()) {
        if (!graph[node].extra.is_valid()) continue;
        shift(graph.mutable_extra(node).origins);
      }
    }
    for (size_t i = first_erased; i < into_.erased.size(); ++i) {
      if (!is_of_other_file(into_.erased[i].graph, first_graph)) into_.erased[i].uid += base;
      shift(into_.erased[i].origins);
    }
  }

  void shift_bindings(uint32_t base) {
    for (size_t i = base; i < into_.invocations.size(); ++i) {
      for (Binding& binding : into_.invocations[i].bindings) {
        if (binding.invocation.has_value()) *binding.invocation += base;
      }
    }
  }

  Status fold_all(const Heads& heads) {
    const auto same = [this](const auto& a, const auto& b) { return text_of(into_, a) == text_of(into_, b); };
    fold(into_.assertions, heads.assertions);
    Status status = fold_named("symbol", into_.symbols, heads.symbols, &Symbol::name, [](Symbol& a, const Symbol& b) {
      const bool is_same = a.kind == b.kind && a.type == b.type && a.min == b.min && a.max == b.max &&
                           (!a.hint.has_value() || !b.hint.has_value() || a.hint == b.hint);
      if (!a.hint.has_value()) a.hint = b.hint;
      return is_same;
    });
    if (status.ok()) status = fold_named("process group", into_.groups, heads.groups, &ProcessGroup::uid, same);
    if (status.ok()) status = fold_named("device mesh", into_.meshes, heads.meshes, &DeviceMesh::name, same);
    if (status.ok())
      status = fold_named("schema of", into_.op_schemas, heads.op_schemas, &OpSchemaRecord::target, same);
    if (status.ok()) status = fold_named("random slot", into_.rng_slots, heads.rng_slots, &RngSlot::name, same);
    if (status.ok()) status = fold_named("stream", into_.streams, heads.streams, &Stream::name, same);
    // Constants with the same name are already equal, see rename_constants().
    const auto any = [](const Constant&, const Constant&) { return true; };
    if (status.ok()) status = fold_named("constant", into_.constants, heads.constants, &Constant::name, any);
    return status;
  }

  // Removes each record from index `first` on that has the same text as an earlier record.
  template <class Record>
  void fold(std::vector<Record>& all, size_t first) const {
    std::unordered_set<std::string> texts;
    for (size_t i = 0; i < first; ++i) texts.insert(text_of(into_, all[i]));
    size_t place = 0;
    std::erase_if(all, [&](const Record& each) { return place++ >= first && texts.contains(text_of(into_, each)); });
  }

  // Removes each record from index `first` on that has the same name as an earlier record. Fails if
  // `same` returns false for the two records.
  template <class Record, class Same>
  Status fold_named(const char* what, std::vector<Record>& all, size_t first, StringId Record::*name,
                    const Same& same) {
    HashMap<StringId, size_t> places;
    for (size_t i = 0; i < first; ++i) places.try_emplace(all[i].*name, i);
    size_t end = first;
    for (size_t i = first; i < all.size(); ++i) {
      const auto found = places.find(all[i].*name);
      if (found == places.end()) {
        if (end != i) all[end] = std::move(all[i]);
        ++end;
      } else if (!same(all[found->second], all[i])) {
        return disagree("the files disagree about the " + std::string(what) + " '" +
                        std::string(into_.text(all[i].*name)) + "': " + text_of(into_, all[found->second]) + " and " +
                        text_of(into_, all[i]));
      }
    }
    all.resize(end);
    return ok_status();
  }

  Module& into_;
  Module& from_;
  std::string file_;
};

}  // namespace

Status merge_module(Module& into, Module& from, const std::string& file) { return Merger(into, from, file).run(); }

}  // namespace fxopt
