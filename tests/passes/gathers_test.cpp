// Random programs of several ranks through fuse-gathers, alias-round-trips and dedup-unshards. The
// checks know nothing of these passes: the prover, and a machine that executes every rank's graph
// on integers.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ir/alias/effects.h"
#include "ir/check/equivalence/equivalence.h"
#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "ir/ranks/ranks.h"
#include "ir/values/call_args.h"
#include "ir/values/values.h"
#include "passes/pipeline/pipeline.h"
#include "tests/catch.h"
#include "tests/count.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

using Numbers = std::vector<int64_t>;

// A mesh with ranks in row-major order, and groups that span some of its dimensions.
struct Mesh {
  std::vector<int64_t> shape;

  int64_t world() const {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    return count;
  }
  Numbers coordinates(int64_t rank) const {
    Numbers found(shape.size());
    for (size_t dim = shape.size(); dim-- > 0; rank /= shape[dim]) found[dim] = rank % shape[dim];
    return found;
  }
  int64_t rank_at(const Numbers& at) const {
    int64_t rank = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim) rank = rank * shape[dim] + at[dim];
    return rank;
  }
  // The ranks that differ from `rank` only along these dimensions. The first dimension varies
  // slowest.
  Numbers ranks(int64_t rank, const std::vector<size_t>& dims) const {
    Numbers found = {rank};
    for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
      Numbers more;
      for (int64_t i = 0; i < shape[*dim]; ++i) {
        for (const int64_t each : found) {
          Numbers at = coordinates(each);
          at[*dim] = i;
          more.push_back(rank_at(at));
        }
      }
      found = std::move(more);
    }
    return found;
  }
};

std::string text_of(const Numbers& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

// One program, written as the text of any of its ranks.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : seed_(seed) {
    std::mt19937_64 random(seed);
    mesh_.shape = random() % 3 == 0 ? Numbers{2, 2, 2} : random() % 2 == 0 ? Numbers{2, 3} : Numbers{2, 2};
    const size_t count = mesh_.shape.size();
    for (size_t dim = 0; dim < count; ++dim) groups_["d" + std::to_string(dim)] = {dim};
    for (size_t a = 0; a < count; ++a) {
      for (size_t b = 0; b < count; ++b) {
        if (a != b && random() % 2 == 0) groups_["e" + std::to_string(a) + std::to_string(b)] = {a, b};
      }
    }
    has_mesh_ = random() % 2 == 0;
  }

  const Mesh& mesh() const { return mesh_; }

  std::string text(int64_t rank) {
    random_.seed(seed_);
    rank_ = rank;
    text_.clear();
    values_.clear();
    for (const auto& [name, dims] : groups_) {
      text_ += "process_group {uid=\"" + name + "\", ranks=[" + text_of(mesh_.ranks(rank, dims)) + "]";
      if (has_mesh_ && dims.size() == 1) text_ += ", mesh=\"m\", mesh_dims=[\"" + name + "\"]";
      text_ += "}\n";
    }
    if (has_mesh_) {
      Numbers all(static_cast<size_t>(mesh_.world()));
      for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
      std::string names, units;
      for (size_t dim = 0; dim < mesh_.shape.size(); ++dim) {
        names += (dim == 0 ? "\"d" : ", \"d") + std::to_string(dim) + "\"";
      }
      text_ += "device_mesh {name=\"m\", device_type=\"cpu\", shape=[" + text_of(mesh_.shape) + "], dim_names=[" +
               names + "], ranks=[" + text_of(all) + "], coordinate=[" + text_of(mesh_.coordinates(rank)) +
               "], groups=[" + names + "]}\n";
    }
    text_ += "rank {rank=" + std::to_string(rank) + ", world_size=" + std::to_string(mesh_.world()) +
             "}\ngraph @main {kind=inference} {\n";
    for (uint64_t i = 0, count = 2 + below(3); i < count; ++i) {
      add({2, 2}, "placeholder() {input={role=parameter}}");
    }
    for (uint64_t i = 0, count = 6 + below(14); i < count; ++i) step();
    text_ += "  return (";
    for (size_t i = 0; i < values_.size(); ++i) {
      if (below(3) != 0) continue;
      text_ += "%r" + std::to_string(i) + ", ";
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      const std::string name = "%r" + std::to_string(i);
      if (text_.ends_with("(") && i + 1 < values_.size()) continue;
      if (text_.ends_with("(")) text_ += name + ", ";
    }
    text_ += ")\n}\n";
    // Every output is computed from a value, and is never a bare view of a gather.
    return with_results();
  }

 private:
  struct Value {
    Numbers sizes;
    int64_t gathered_over = 0;  // ranks of the gather, or 0 if the value is no result of one
    std::string group;
    bool is_cut = false;
  };

  uint64_t below(uint64_t end) { return random_() % end; }
  std::string name(size_t value) const { return "%v" + std::to_string(value); }

  size_t add(const Numbers& sizes, const std::string& call, const std::string& note = "") {
    text_ += "  " + name(values_.size()) + ": f32[" + text_of(sizes) + "]" + note + " = " + call + "\n";
    values_.push_back({sizes, 0, ""});
    return values_.size() - 1;
  }
  size_t any() {
    return below(3) > 0 ? values_.size() - 1 - below(std::min<size_t>(values_.size(), 3)) : below(values_.size());
  }
  std::string any_group() {
    auto found = groups_.begin();
    std::advance(found, static_cast<int64_t>(below(groups_.size())));
    return found->first;
  }

  void step() {
    const size_t from = any();
    const Numbers sizes = values_[from].sizes;
    const uint64_t kind = below(8);
    if (kind == 0) add(sizes, "aten.neg.default(" + name(from) + ")");
    if (kind == 1) {
      const size_t other = any();
      if (other != from && values_[other].sizes == sizes) {
        add(sizes, "aten.add.Tensor(" + name(from) + ", " + name(other) + ")");
      }
    }
    if (kind == 2) {
      cut(from);
      if (below(2) == 0) cut_along(from);
    }
    if (kind == 3) flatten(from);
    if (kind == 4) scatter(from);
    if (kind > 4) gather(from);
  }

  void gather(size_t from) {
    const std::string group = any_group();
    const int64_t count = static_cast<int64_t>(mesh_.ranks(rank_, groups_[group]).size());
    Numbers sizes = values_[from].sizes;
    if (sizes[0] * count > 200) return;
    sizes[0] *= count;
    collect("all_gather_into_tensor.default(" + name(from) + ", " + std::to_string(count) + ", \"" + group + "\")",
            sizes);
    values_.back().gathered_over = count;
    values_.back().group = group;
  }
  void scatter(size_t from) {
    const std::string group = any_group();
    const int64_t count = static_cast<int64_t>(mesh_.ranks(rank_, groups_[group]).size());
    Numbers sizes = values_[from].sizes;
    if (sizes[0] % count != 0) return;
    sizes[0] /= count;
    collect(
        "reduce_scatter_tensor.default(" + name(from) + ", \"sum\", " + std::to_string(count) + ", \"" + group + "\")",
        sizes);
    // Often adds a second reduce-scatter of the same kind, and the sum of both.
    if (below(2) == 0) return;
    const size_t one = values_.size() - 1, other = add(values_[from].sizes, "aten.neg.default(" + name(from) + ")");
    collect(
        "reduce_scatter_tensor.default(" + name(other) + ", \"sum\", " + std::to_string(count) + ", \"" + group + "\")",
        sizes);
    add(sizes, "aten.add.Tensor(" + name(one) + ", " + name(values_.size() - 1) + ")");
  }
  void collect(const std::string& call, const Numbers& sizes) {
    const std::string start = "%c" + std::to_string(values_.size());
    text_ += "  " + start + ": f32[" + text_of(sizes) + "] = _c10d_functional." + call + "\n";
    add(sizes, "_c10d_functional.wait_tensor.default(" + start + ")");
  }

  // One rank's slice of a gathered tensor, mostly this rank's own.
  void cut(size_t from) {
    const Value& value = values_[from];
    if (value.gathered_over == 0) return;
    const Numbers ranks = mesh_.ranks(rank_, groups_[value.group]);
    const int64_t own = std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin();
    const int64_t place = below(4) > 0 ? own : static_cast<int64_t>(below(ranks.size()));
    Numbers sizes = value.sizes;
    sizes[0] /= value.gathered_over;
    int64_t row = 1;
    for (size_t i = 1; i < sizes.size(); ++i) row *= sizes[i];
    const int64_t offset = place * sizes[0] * row;
    const size_t cut = add(sizes,
                           "aten.slice.Tensor(" + name(from) + ", 0, " + std::to_string(place * sizes[0]) + ", " +
                               std::to_string((place + 1) * sizes[0]) + ")",
                           offset == 0 ? "" : "+" + std::to_string(offset));
    values_[cut].is_cut = true;
    add(sizes, "aten.neg.default(" + name(cut) + ")");
  }
  // The same for columns, after all ranks' slices are concatenated side by side. Sometimes two
  // slices are swapped, or the result is not copied.
  void cut_along(size_t from) {
    const Value value = values_[from];
    if (value.gathered_over < 2 || value.sizes.size() != 2) return;
    const Numbers ranks = mesh_.ranks(rank_, groups_[value.group]);
    const int64_t own = std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin();
    const int64_t place = below(5) > 0 ? own : static_cast<int64_t>(below(ranks.size()));
    const int64_t rows = value.sizes[0] / value.gathered_over, columns = value.sizes[1];
    std::vector<std::string> parts;
    for (int64_t i = 0; i < value.gathered_over; ++i) {
      const size_t part = add({rows, columns},
                              "aten.slice.Tensor(" + name(from) + ", 0, " + std::to_string(i * rows) + ", " +
                                  std::to_string((i + 1) * rows) + ")",
                              i == 0 ? "" : "+" + std::to_string(i * rows * columns));
      values_[part].is_cut = true;
      parts.push_back(name(part));
    }
    if (below(6) == 0) std::swap(parts.front(), parts.back());
    std::string list;
    for (const std::string& part : parts) list += (list.empty() ? "" : ", ") + part;
    const int64_t width = columns * value.gathered_over;
    const size_t all = add({rows, width}, "aten.cat.default([" + list + "], 1)");
    const size_t cut =
        add({rows, columns},
            "aten.slice.Tensor(" + name(all) + ", 1, " + std::to_string(place * columns) + ", " +
                std::to_string((place + 1) * columns) + ")",
            "(" + std::to_string(width) + ", 1)" + (place == 0 ? "" : "+" + std::to_string(place * columns)));
    const std::string taken = name(cut);
    values_.pop_back();  // collectives take only contiguous values
    text_.replace(text_.rfind(taken), taken.size(), "%s" + std::to_string(++num_cuts_));
    const std::string source = "%s" + std::to_string(num_cuts_);
    if (below(6) == 0) {
      add({rows, columns}, "aten.neg.default(" + source + ")");
    } else {
      add({rows, columns}, "aten.clone.default(" + source + ")");
    }
  }
  void flatten(size_t from) {
    if (values_[from].is_cut) return;  // its views would have an offset as well
    const Numbers sizes = values_[from].sizes;
    const Numbers other = sizes.size() == 2   ? Numbers{sizes[0] * sizes[1]}
                          : sizes[0] % 2 == 0 ? Numbers{sizes[0] / 2, 2}
                                              : sizes;
    if (other == sizes) return;
    add(other, "aten.view.default(" + name(from) + ", [" + text_of(other) + "])");
  }

  // Returns every value through an `exp` of its own, so that no output is part of a buffer.
  std::string with_results() {
    const size_t at = text_.rfind("  return");
    std::string last = text_.substr(at), results;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (last.find("%r" + std::to_string(i) + ",") == std::string::npos) continue;
      results +=
          "  %r" + std::to_string(i) + ": f32[" + text_of(values_[i].sizes) + "] = aten.exp.default(" + name(i) + ")\n";
    }
    return text_.substr(0, at) + results + last;
  }

  uint64_t seed_;
  std::mt19937_64 random_;
  Mesh mesh_;
  std::map<std::string, std::vector<size_t>> groups_;
  bool has_mesh_ = false;
  int64_t rank_ = 0;
  std::string text_;
  std::vector<Value> values_;
  size_t num_cuts_ = 0;  // cuts of columns
};

// Executes all ranks together on integers. A collective finds the calls of the other ranks by name.
class Machine {
 public:
  explicit Machine(const std::vector<std::unique_ptr<Module>>& ranks) : ranks_(ranks), known_(ranks.size()) {}

  std::vector<Numbers> outputs(size_t rank) {
    std::vector<Numbers> found;
    for (const NodeId node : output_leaves(ranks_[rank]->main())) found.push_back(value(rank, node));
    return found;
  }

 private:
  const Numbers& value(size_t rank, NodeId node) {
    const auto known = known_[rank].find(node);
    if (known != known_[rank].end()) return known->second;
    return known_[rank][node] = compute(rank, node);
  }
  const Numbers& argument(size_t rank, NodeId node, size_t place = 0) {
    return value(rank, call_argument(ranks_[rank]->main(), node, place)->as_node());
  }

  Numbers compute(size_t rank, NodeId node) {
    const Graph& graph = ranks_[rank]->main();
    if (graph[node].kind == NodeKind::kPlaceholder) {
      Numbers made(4);
      const int64_t which = static_cast<int64_t>(graph.position(node));
      for (size_t i = 0; i < made.size(); ++i) {
        made[i] = 1 + static_cast<int64_t>(i) + 10 * which + 1000 * static_cast<int64_t>(rank);
      }
      return made;
    }
    const std::string_view name = graph.op(node).name;
    if (name == "aten.neg.default" || name == "aten.exp.default") {
      Numbers made = argument(rank, node);
      for (int64_t& number : made) number = name == "aten.neg.default" ? -number : 3 * number + 1;
      return made;
    }
    if (name == "aten.add.Tensor") {
      Numbers made = argument(rank, node);
      const Numbers& other = argument(rank, node, 1);
      for (size_t i = 0; i < made.size(); ++i) made[i] += other[i];
      return made;
    }
    const Arg* along =
        name == "aten.slice.Tensor" || name == "aten.cat.default" ? call_argument(graph, node, 1) : nullptr;
    if (along != nullptr && along->as_int() == 1) {
      const Tensor& tensor = *single_tensor(graph, node);
      const int64_t rows = graph.module().dims(tensor.sizes)[0].value,
                    columns = graph.module().dims(tensor.sizes)[1].value;
      Numbers made;
      for (int64_t row = 0; row < rows; ++row) {
        if (name == "aten.cat.default") {
          for (const Arg& part : graph.pool().children(*call_argument(graph, node, 0))) {
            const Numbers& from = value(rank, part.as_node());
            const int64_t width = static_cast<int64_t>(from.size()) / rows;
            made.insert(made.end(), from.begin() + row * width, from.begin() + (row + 1) * width);
          }
        } else {
          const Numbers& from = argument(rank, node);
          const int64_t begin =
              row * (static_cast<int64_t>(from.size()) / rows) + call_argument(graph, node, 2)->as_int();
          made.insert(made.end(), from.begin() + begin, from.begin() + begin + columns);
        }
      }
      return made;
    }
    if (name == "aten.slice.Tensor") {
      const Numbers& from = argument(rank, node);
      const Tensor& tensor = *single_tensor(graph, node);
      const Tensor& source = *single_tensor(graph, first_argument(graph, node));
      const int64_t begin = tensor.offset.value - source.offset.value;
      int64_t count = 1;
      for (const Dim& dim : graph.module().dims(tensor.sizes)) count *= dim.value;
      return Numbers(from.begin() + begin, from.begin() + begin + count);
    }
    if (name.find("all_gather") != std::string_view::npos) {
      Numbers made;
      for (const int64_t other : group(rank, node)) {
        const Numbers part =
            argument(static_cast<size_t>(other), fellow(static_cast<size_t>(other), graph.name_of(node)));
        made.insert(made.end(), part.begin(), part.end());
      }
      return made;
    }
    if (name.find("reduce_scatter") != std::string_view::npos) {
      const Numbers ranks = group(rank, node);
      Numbers sum(argument(rank, node).size(), 0);
      for (const int64_t other : ranks) {
        const Numbers part =
            argument(static_cast<size_t>(other), fellow(static_cast<size_t>(other), graph.name_of(node)));
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
      }
      const size_t place =
          static_cast<size_t>(std::find(ranks.begin(), ranks.end(), static_cast<int64_t>(rank)) - ranks.begin());
      const size_t count = sum.size() / ranks.size();
      return Numbers(sum.begin() + static_cast<int64_t>(place * count),
                     sum.begin() + static_cast<int64_t>((place + 1) * count));
    }
    return argument(rank, node);  // views and waits
  }

  Numbers group(size_t rank, NodeId node) const {
    const Module& module = *ranks_[rank];
    const GroupKey key = group_of_call(module.main(), node);
    for (const ProcessGroup& group : module.groups) {
      if (group.uid == key.uid) return group.ranks;
    }
    FAIL("no group");
    return {};
  }
  NodeId fellow(size_t rank, std::string_view name) const {
    const NodeId found = ranks_[rank]->main().find(ranks_[rank]->intern(name));
    REQUIRE(found.is_valid());
    return found;
  }

  const std::vector<std::unique_ptr<Module>>& ranks_;
  std::vector<std::map<NodeId, Numbers>> known_;
};

uint64_t num_programs() { return count_given("FXOPT_RANDOM_GRAPHS", 10000) / 5; }

constexpr const char* kPipelines[] = {"fuse-gathers{gate=none}", "alias-round-trips{drop-gathers=shown}",
                                      "dedup-unshards{reductions=merge,max-growth=-1}",
                                      "compute-cap{max-consecutive=1}",
                                      "dedup-unshards{max-growth=-1},fuse-gathers{gate=none},alias-round-trips"};

std::optional<RunReport> run_on(Module& module, const std::string& text) {
  const Pipeline pipeline = parse_pipeline(text).value();
  RunOptions run;
  run.numerics = Numerics::kReordersReductions;
  Result<RunReport> report = run_pipeline(module, pipeline, run);
  if (report.ok()) return std::move(*report);
  FAIL_CHECK(format_error(report.error()) << print_text(module));
  return std::nullopt;
}

// Counts copies of columns that were cut out of a cat.
int64_t num_copied_columns(const Module& module) {
  const std::string text = print_text(module);
  int64_t count = 0;
  for (size_t at = 0; (at = text.find("clone.default(%s", at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST_CASE("gathers: random programs compute the same on every rank", "[passes][gathers][random]") {
  std::map<std::string, int64_t> counted;
  for (uint64_t seed = 1; seed <= num_programs(); ++seed) {
    RandomProgram program(seed);
    std::vector<std::unique_ptr<Module>> before, after;
    for (int64_t rank = 0; rank < program.mesh().world(); ++rank) {
      before.push_back(parse(program.text(rank)));
      after.push_back(parse(program.text(rank)));
    }
    const std::string pipeline = kPipelines[seed % std::size(kPipelines)];
    INFO("seed " << seed << " " << pipeline << "\n" << program.text(0));
    std::vector<RankTrace> traces;
    for (size_t rank = 0; rank < after.size(); ++rank) {
      const std::optional<RunReport> report = run_on(*after[rank], pipeline);
      if (!report.has_value()) return;
      counted["columns"] += num_copied_columns(*before[rank]) - num_copied_columns(*after[rank]);
      for (const StepReport& step : report->steps) {
        for (const auto& [counter, amount] : step.result.counters()) counted[counter] += amount;
      }
      for (const Error& error : verify(*after[rank])) FAIL_CHECK(format_error(error));
      traces.push_back(trace_rank(*after[rank], static_cast<int64_t>(rank), "rank" + std::to_string(rank)));
    }
    for (const RankConflict& conflict : compare_ranks(traces).conflicts) {
      // The program itself may have a gather without a wait and without a user.
      if (conflict.kind != RankConflict::Kind::kDiscipline) FAIL_CHECK(conflict.text);
    }
    Machine own(before), other(after);
    for (size_t rank = 0; rank < after.size(); ++rank) CHECK(own.outputs(rank) == other.outputs(rank));
  }
  for (const char* counter : {"fused", "groups", "round-trips", "merged", "merged-reductions", "columns"}) {
    INFO(counter);
    // A few programs may leave some counters at 0.
    if (num_programs() >= 2000) CHECK(counted[counter] > static_cast<int64_t>(num_programs() / 50));
  }
}

// Edits an optimized graph so that it computes something else. spoil() returns false, and changes
// nothing, if the edit has no place in the graph.
class GatherSpoiler {
 public:
  GatherSpoiler(Graph& graph, uint64_t seed) : graph_(graph), random_(seed) {}

  static constexpr int kKinds = 6;
  bool spoil(int kind) {
    if (kind == 0) return run_on_another_group();
    if (kind == 1) return lose_wait();
    if (kind == 2) return read_another("all_gather");
    if (kind == 3) return read_another("reduce_scatter");
    if (kind == 4) return change_reduction();
    return read_another("aten.neg.default");
  }

 private:
  // Calls that an output depends on, with `part` in the name.
  std::vector<NodeId> calls(std::string_view part) {
    std::vector<NodeId> found;
    IdMap<NodeId, bool> is_read(graph_.num_ids(), false);
    for (NodeId node = graph_.last(); node.is_valid(); node = graph_.prev(node)) {
      if (graph_[node].kind != NodeKind::kOutput && !is_read[node]) continue;
      graph_.for_each_input(node, [&is_read](NodeId input) { is_read[input] = true; });
      if (graph_[node].is_call() && graph_.op(node).name.find(part) != std::string::npos) found.push_back(node);
    }
    std::shuffle(found.begin(), found.end(), random_);
    return found;
  }
  const ProcessGroup* group_of(NodeId node) const {
    const GroupKey key = group_of_call(graph_, node);
    for (const ProcessGroup& group : graph_.module().groups) {
      if (group.uid == key.uid) return &group;
    }
    return nullptr;
  }

  bool is_returned_whole(NodeId gather) const {
    for (const NodeId wait : graph_.users(gather)) {
      for (const NodeId user : graph_.users(wait)) {
        if (graph_.op(user).name == "aten.exp.default") return true;
      }
    }
    return false;
  }

  // Moves a gather to a group of as many ranks: different ranks, or another order.
  bool run_on_another_group() {
    for (const NodeId node : calls("_c10d_functional.all_gather")) {
      const ProcessGroup* own = group_of(node);
      if (!is_returned_whole(node)) continue;  // the rank's own slice is the same in any group
      for (const ProcessGroup& other : graph_.module().groups) {
        if (own == nullptr || other.ranks.size() != own->ranks.size() || other.ranks == own->ranks) continue;
        std::vector<Arg> args(graph_.pool().args(graph_[node].args).begin(),
                              graph_.pool().args(graph_[node].args).end());
        args.back() = Arg::string(other.uid);
        graph_.set_args(node, graph_.pool().append(args), ArgRange());
        return true;
      }
    }
    return false;
  }
  bool lose_wait() {
    for (const NodeId wait : calls("wait_tensor")) {
      if (!graph_.has_users(wait)) continue;
      graph_.replace_all_uses(wait, first_argument(graph_, wait));
      graph_.erase(wait);
      return true;
    }
    return false;
  }
  // Replaces an input as the first argument by another input, which has other numbers.
  bool read_another(std::string_view part) {
    for (const NodeId node : calls(part)) {
      const NodeId own = first_argument(graph_, node);
      for (const NodeId other : graph_.nodes()) {
        const bool is_input = graph_[other].kind == NodeKind::kPlaceholder;
        if (other == own || !is_input || graph_[own].kind != NodeKind::kPlaceholder) continue;
        graph_.set_use(graph_.edges(node)[0], other);
        return true;
      }
    }
    return false;
  }
  bool change_reduction() {
    for (const NodeId node : calls("reduce_scatter")) {
      std::vector<Arg> args(graph_.pool().args(graph_[node].args).begin(), graph_.pool().args(graph_[node].args).end());
      args[1] = Arg::string(graph_.module().intern("avg"));
      graph_.set_args(node, graph_.pool().append(args), ArgRange());
      return true;
    }
    return false;
  }

  Graph& graph_;
  std::mt19937_64 random_;
};

TEST_CASE("gathers: what is spoiled afterwards is not proved", "[passes][gathers][random]") {
  size_t spoiled[GatherSpoiler::kKinds] = {};
  for (uint64_t seed = 1; seed <= num_programs() / 2; ++seed) {
    RandomProgram program(seed);
    const std::string text = program.text(0);
    const std::unique_ptr<Module> before = parse(text), after = parse(text);
    const std::string pipeline = kPipelines[seed % 3];
    const std::optional<RunReport> report = run_on(*after, pipeline);
    if (!report.has_value() || !report->steps[0].result.changed()) continue;
    ProofOptions options;
    options.numerics = Numerics::kReordersReductions;
    options.allow_dead_collectives = true;
    // Claims prove nothing by themselves, so extra claims are put on every node of both graphs.
    const std::vector<Claim> claims = report->steps[0].result.claims();
    std::vector<std::vector<Claim>> sets = {claims};
    for (const auto& [law, name] : EnumNames<RewriteRule>::kAll) {
      sets.push_back(claims);
      for (const Module* module : {before.get(), after.get()}) {
        for (const NodeId node : module->main().nodes()) sets.back().push_back({"main", module->main()[node].uid, law});
      }
    }
    for (int kind = 0; kind < GatherSpoiler::kKinds; ++kind) {
      const std::unique_ptr<Module> wrong = after->clone();
      if (!GatherSpoiler(wrong->main(), seed).spoil(kind)) continue;
      ++spoiled[kind];
      for (size_t i = 0; i < sets.size(); ++i) {
        INFO("seed " << seed << ", kind " << kind << ", claims " << i);
        if (Prover(*before, options, sets[i]).prove(*wrong).answer == ProofAnswer::kProved) {
          FAIL_CHECK(text << print_text(*wrong));
        }
      }
    }
  }
  size_t all = 0;
  for (int kind = 0; kind < GatherSpoiler::kKinds; ++kind) {
    INFO("kind " << kind);
    CHECK(spoiled[kind] > 0);
    all += spoiled[kind];
  }
  if (num_programs() >= 2000) CHECK(all >= 500);
}

}  // namespace
}  // namespace fxopt
