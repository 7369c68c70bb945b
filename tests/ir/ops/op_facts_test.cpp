// Compares the op table with executed calls. tests/ir/data/op_facts.fxg.zst has one graph for each
// call that scripts/peers/op_facts.py executed, with the recorded facts. The test fails if the
// table, EffectMap or StorageMap denies an observed fact. Claiming an unobserved one is safe:
// these cases fall into the classes below, each with its exact count. A case in no class fails the
// test.
#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/alias/effect_map.h"
#include "ir/alias/storages.h"
#include "ir/graph/module.h"
#include "ir/io/io.h"
#include "ir/values/elements.h"
#include "ir/values/values.h"
#include "tests/catch.h"
#include "tests/must.h"

namespace fxopt {
namespace {

using Pairs = std::set<std::pair<size_t, size_t>>;

// The facts of one call, by tensors of its outputs and of its arguments in order; `Facts` in
// op_run.py defines them.
struct Executed {
  Pairs shares, same, joined;
  std::set<size_t> writes, bumps, resizes, moves, reads;
  bool draws = false;
};

size_t number(std::string_view text) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  REQUIRE((error == std::errc() && end == text.data() + text.size()));
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// "shares=0:0,1:0 writes=1 draws"
Executed read_facts(std::string_view text) {
  Executed facts;
  std::map<std::string_view, Pairs*> pairs = {
      {"shares", &facts.shares}, {"same", &facts.same}, {"joined", &facts.joined}};
  std::map<std::string_view, std::set<size_t>*> numbers = {{"writes", &facts.writes},
                                                           {"bumps", &facts.bumps},
                                                           {"resizes", &facts.resizes},
                                                           {"moves", &facts.moves},
                                                           {"reads", &facts.reads}};
  for (const std::string_view part : split(text, ' ')) {
    const std::string_view name = part.substr(0, part.find('='));
    facts.draws |= part == "draws";
    if (part == "draws") continue;
    for (const std::string_view item : split(part.substr(name.size() + 1), ',')) {
      const size_t colon = item.find(':');
      if (colon != std::string_view::npos) {
        pairs.at(name)->insert({number(item.substr(0, colon)), number(item.substr(colon + 1))});
      } else {
        numbers.at(name)->insert(number(item));
      }
    }
  }
  return facts;
}

// The graphs with a disagreement between the analyses and the execution, by class.
using Counts = std::map<std::string, std::vector<std::string>>;  // class -> graphs

// Temporary nodes at the end of a graph, erased by the destructor.
class Probe {
 public:
  explicit Probe(Graph& graph) : graph_(graph) {}
  ~Probe() {
    for (size_t i = nodes_.size(); i-- > 0;) graph_.erase(nodes_[i]);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  NodeId add(std::string_view target, NodeId input, std::optional<size_t> number = std::nullopt) {
    const NodeId node =
        graph_.insert_node(graph_.output(), NodeKind::kCallFunction, "probe", graph_.module().target(target));
    ArgStack stack(graph_.pool());
    stack.push(Arg::node(input));
    if (number.has_value()) stack.push(Arg::integer(static_cast<int64_t>(*number)));
    graph_.set_args(node, stack.take(0), ArgRange());
    nodes_.push_back(node);
    return node;
  }

  // A node for tensor `leaf` of `node`'s result.
  NodeId element(NodeId node, size_t leaf) {
    const Value value = graph_.value(node);
    if (!has_elements(value)) return node;
    for (uint32_t i = 0;; ++i) {
      REQUIRE(i < value.count);
      size_t count = 0;
      for_each_tensor(graph_, ValueId(value.first + i), [&count](ValueId, const Tensor&) { ++count; });
      if (leaf >= count) {
        leaf -= count;
        continue;
      }
      const NodeId taken = add("operator.getitem", node, i);
      graph_[taken].value = ValueId(value.first + i);
      return element(taken, leaf);
    }
  }

 private:
  Graph& graph_;
  std::vector<NodeId> nodes_;
};

// Compares one call with the analyses. Adds each disagreement to `found`; "denied" ones are unsafe.
class Judge {
 public:
  Judge(Graph& graph, Counts& found) : graph_(graph), effects_(graph), storages_(graph, effects_), found_(found) {
    for (const NodeId node : graph.nodes()) {
      if (graph[node].kind == NodeKind::kPlaceholder) append(node, arguments_);
      if (graph[node].kind == NodeKind::kCallFunction) call_ = node;
    }
    append(call_, outputs_);
  }

  void run(const Executed& facts) {
    judge_sharing(facts);
    judge_objects(facts);
    judge_changes(facts);
    judge("draws", facts.draws, claims(Effect::kRandom));
    judge_reads(facts);
  }

  size_t answers() const { return answers_; }

 private:
  struct Held {
    NodeId node;
    BufferId buffer;
    ObjectId object;
  };

  void append(NodeId node, std::vector<Held>& to) {
    const std::span<const BufferId> buffers = storages_.buffers(node);
    for (size_t i = 0; i < buffers.size(); ++i) to.push_back({node, buffers[i], storages_.objects(node)[i]});
  }

  void judge(const std::string& what, bool is_seen, bool is_claimed) {
    ++answers_;
    if (is_seen != is_claimed) add((is_seen ? "denied: " : "claimed: ") + what);
  }

  void add(const std::string& what) { found_[what].push_back(std::string(graph_.module().text(graph_.name()))); }

  bool claims(Effect effect) { return effects_.has(call_, effect) || effects_.has(call_, Effect::kOpaque); }

  bool may_share(const Held& a, const Held& b) const {
    return a.buffer.is_valid() && b.buffer.is_valid() &&
           storages_.alias_class(a.buffer) == storages_.alias_class(b.buffer);
  }

  void judge_sharing(const Executed& facts) {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      bool is_argument = false;
      for (size_t a = 0; a < arguments_.size(); ++a) {
        const bool is_seen = facts.shares.count({o, a}) != 0;
        judge("shares memory", is_seen, may_share(outputs_[o], arguments_[a]));
        if (!is_seen && outputs_[o].buffer == arguments_[a].buffer) add("denied: copies");
        const bool is_same = outputs_[o].object == arguments_[a].object;
        if (is_same && facts.same.count({o, a}) == 0) add("denied: makes another object");
        is_argument |= may_share(outputs_[o], arguments_[a]);
      }
      for (size_t other = o + 1; other < outputs_.size() && !is_argument; ++other) {
        judge("outputs share memory", facts.joined.count({o, other}) != 0, may_share(outputs_[o], outputs_[other]));
      }
    }
  }

  void judge_reads(const Executed& facts) {
    if (arguments_.empty()) return;
    const bool is_claimed = storages_.reads_data(call_);
    if (!facts.reads.empty() || !is_claimed) {
      judge("reads data", !facts.reads.empty(), is_claimed);
      return;
    }
    const auto is_empty = [this](const Held& each) {
      const Tensor* tensor = single_tensor(graph_, each.node);
      if (tensor == nullptr || !tensor->sizes.is_valid()) return false;
      const std::vector<Dim>& sizes = graph_.module().dims(tensor->sizes);
      return std::any_of(sizes.begin(), sizes.end(),
                         [](const Dim& size) { return size.is_static() && size.value == 0; });
    };
    std::set<size_t> placed;
    for (const auto& [output, argument] : facts.shares) placed.insert(output);
    const bool is_placed = !outputs_.empty() && placed.size() == outputs_.size();
    const bool of_nothing = std::all_of(arguments_.begin(), arguments_.end(), is_empty);
    judge(of_nothing  ? "reads data of nothing"
          : is_placed ? "reads data that the result lies in"
                      : "reads data without a trace",
          false, true);
  }

  // Identity of tensor objects shows when sizes change: every holder of the object sees the change.
  void judge_objects(const Executed& facts) {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      Probe probe(graph_);
      const NodeId change = probe.add("aten.unsqueeze_.default", probe.element(call_, o), 0);
      std::vector<NodeId> readers;
      for (const Held& each : arguments_) readers.push_back(probe.add("aten.alias.default", each.node));
      const StorageMap storages(graph_);
      for (size_t a = 0; a < arguments_.size(); ++a) {
        const NodeId holder = arguments_[a].node;
        if (a > 0 && holder == arguments_[a - 1].node) continue;  // a tuple's tensors together
        bool is_seen = false;
        for (size_t same = a; same < arguments_.size() && arguments_[same].node == holder; ++same) {
          is_seen |= facts.same.count({o, same}) != 0;
        }
        judge("returns an argument", is_seen, storages.input_metadata_changes(readers[a], call_, readers[a]));
      }
      CHECK(storages.metadata_changes_after(graph_.prev(change)));
    }
  }

  void judge_changes(const Executed& facts) {
    const std::span<const BufferId> written = storages_.writes(call_);
    for (size_t a = 0; a < arguments_.size(); ++a) {
      const bool changes = facts.resizes.count(a) + facts.moves.count(a) != 0;
      judge("changes metadata", changes, storages_.metadata_changes_after(arguments_[a].node));
      const bool is_claimed = std::find(written.begin(), written.end(), arguments_[a].buffer) != written.end();
      if (changes) continue;
      judge(facts.bumps.count(a) != 0 ? "counts a version" : "writes",
            facts.writes.count(a) + facts.bumps.count(a) != 0, is_claimed);
    }
  }

  Graph& graph_;
  EffectMap effects_;
  StorageMap storages_;
  Counts& found_;
  NodeId call_;
  std::vector<Held> arguments_, outputs_;
  size_t answers_ = 0;
};

struct Row {
  const char* name;
  size_t count;
  const char* reason;
};

// Facts claimed for more calls than they hold for, each with a reason. "denied" has no row.
constexpr Row kSafe[] = {
    {"changes metadata", 218, "t_ of one dimension; lists of out arguments, which are not compared"},
    {"draws", 165, "a dropout of nothing or of everything, an evaluation, an empty result"},
    {"reads data of nothing", 892, "every argument is empty"},
    {"reads data that the result lies in", 1422,
     "an argument was returned, or written with what other data did not change"},
    {"reads data without a trace", 120, "only sizes count, or other data gave the same result"},
    {"returns an argument", 107, "what may return its argument made a view or a copy"},
    {"shares memory", 31, "what may be a view copied"},
    {"writes", 121, "an in-place op that had nothing to do"},
};

std::unique_ptr<Module> load_facts() { return must(load_module(FXOPT_SOURCE_DIR "/tests/ir/data/op_facts.fxg.zst")); }

// Checks every graph; returns the number of questions.
size_t judge_all(Module& module, Counts& found) {
  size_t answers = 0;
  for (const GraphId id : module.graphs()) {
    Graph& graph = module.graph(id);
    for (NodeId node = graph.first(); node.is_valid(); node = graph.next(node)) {
      const Arg* facts = graph.meta_entry(node, "executed");
      if (facts == nullptr) continue;
      Judge judge(graph, found);
      judge.run(read_facts(module.text(facts->as_string())));
      answers += judge.answers();
    }
  }
  return answers;
}

void check_nothing_denied(const Counts& found) {
  for (const auto& [what, graphs] : found) {
    if (!what.starts_with("denied")) continue;
    for (const std::string& graph : graphs) FAIL_CHECK(what + ": " + graph);
  }
}

TEST_CASE("op facts: the analyses deny nothing that ran, and claim more for known reasons only", "[op_facts]") {
  const std::unique_ptr<Module> module = load_facts();
  CHECK(module->num_graphs() == 9547);
  Counts found;
  CHECK(judge_all(*module, found) == 110814);
  check_nothing_denied(found);
  std::vector<std::string> claimed, expected;
  for (const auto& [what, graphs] : found) {
    if (what.starts_with("claimed: ")) claimed.push_back(what.substr(9) + ": " + std::to_string(graphs.size()));
  }
  for (const Row& row : kSafe) {
    CHECK_FALSE(std::string_view(row.reason).empty());
    expected.push_back(std::string(row.name) + ": " + std::to_string(row.count));
  }
  CHECK(claimed == expected);
}

TEST_CASE("op facts: nothing is denied where no values are recorded", "[op_facts]") {
  const std::unique_ptr<Module> module = load_facts();
  for (const GraphId id : module->graphs()) {
    Graph& graph = module->graph(id);
    for (const NodeId node : graph.nodes()) {
      if (!has_elements(graph.value(node))) graph[node].value = ValueId();
    }
  }
  Counts found;
  judge_all(*module, found);
  check_nothing_denied(found);
}

}  // namespace
}  // namespace fxopt
