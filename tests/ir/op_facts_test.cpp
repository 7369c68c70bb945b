// The op table held to what ran: tests/ir/data/op_facts.fxg.zst has one graph for each call that
// scripts/peers/op_facts.py executed, with what the call did. Where the table, EffectMap or StorageMap deny what was
// seen, the test fails. Where they claim what was not seen, that is safe: such cases fall into the classes below, each
// with its count, and what falls in none fails.
#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/analysis/effect_map.h"
#include "ir/analysis/storages.h"
#include "ir/analysis/values.h"
#include "ir/graph/module.h"
#include "ir/io/io.h"
#include "tests/catch.h"

namespace fxopt {
namespace {

using Pairs = std::set<std::pair<size_t, size_t>>;

// What one call did, by tensors of its outputs and of its arguments in order; `Facts` of op_run.py says what each is.
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

// One call, as the analyses see it.
class Judge {
 public:
  Judge(const Graph& graph, std::map<std::string, std::vector<std::string>>& found)
      : graph_(graph), effects_(graph), storages_(graph, effects_), found_(found) {
    for (const NodeId node : graph.nodes()) {
      if (graph[node].kind == NodeKind::kPlaceholder) append(storages_.buffers(node), arguments_);
      if (graph[node].kind == NodeKind::kCallFunction) call_ = node;
    }
    append(storages_.buffers(call_), outputs_);
  }

  void run(const Executed& facts) {
    judge_sharing(facts);
    judge_writes(facts);
    judge("draws", facts.draws, claims(Effect::kRandom));
    judge("reads data", !facts.reads.empty(), reads_data());
  }

 private:
  static void append(std::span<const BufferId> from, std::vector<BufferId>& to) {
    to.insert(to.end(), from.begin(), from.end());
  }

  void judge(const std::string& what, bool is_seen, bool is_claimed) {
    if (is_seen == is_claimed) {
      ++agreements_;
    } else {
      found_[(is_seen ? "denied: " : "claimed: ") + what].push_back(std::string(graph_.module().text(graph_.name())));
    }
  }

  bool claims(Effect effect) { return effects_.has(call_, effect) || effects_.has(call_, Effect::kUnknownWrites); }

  bool may_share(BufferId a, BufferId b) const {
    return a.is_valid() && b.is_valid() && storages_.alias_class(a) == storages_.alias_class(b);
  }

  void judge_sharing(const Executed& facts) {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      for (size_t a = 0; a < arguments_.size(); ++a) {
        const bool is_seen = facts.shares.count({o, a}) != 0;
        judge("shares memory", is_seen, may_share(outputs_[o], arguments_[a]));
        if (!is_seen && outputs_[o] == arguments_[a]) judge("no copy", true, false);
      }
      for (size_t other = o + 1; other < outputs_.size(); ++other) {
        if (is_argument(outputs_[o])) continue;
        judge("outputs share memory", facts.joined.count({o, other}) != 0, may_share(outputs_[o], outputs_[other]));
      }
    }
  }

  bool is_argument(BufferId buffer) const {
    return std::any_of(arguments_.begin(), arguments_.end(), [&](BufferId each) { return may_share(each, buffer); });
  }

  void judge_writes(const Executed& facts) {
    const std::span<const BufferId> written = storages_.writes(call_);
    for (size_t a = 0; a < arguments_.size(); ++a) {
      const bool is_claimed = std::find(written.begin(), written.end(), arguments_[a]) != written.end();
      const bool is_quiet = facts.bumps.count(a) != 0;
      const bool is_seen = facts.writes.count(a) + facts.resizes.count(a) + facts.moves.count(a) != 0;
      judge(is_quiet ? "counts a version" : "writes", is_seen || is_quiet, is_claimed);
    }
  }

  bool reads_data() {
    switch (graph_.op(call_).view) {
      case ViewKind::kView:
      case ViewKind::kMultiView:
      case ViewKind::kProjection:
        return false;
      case ViewKind::kMaybeView:
        return std::any_of(outputs_.begin(), outputs_.end(), [&](BufferId b) { return storages_.buffer(b).producer == call_; });
      default:
        return true;
    }
  }

  const Graph& graph_;
  EffectMap effects_;
  StorageMap storages_;
  std::map<std::string, std::vector<std::string>>& found_;
  NodeId call_;
  std::vector<BufferId> arguments_, outputs_;
  size_t agreements_ = 0;
};

TEST_CASE("the op table denies nothing that ran", "[op_facts]") {
  Result<std::unique_ptr<Module>> loaded =
      load_module(std::string(FXOPT_SOURCE_DIR) + "/tests/ir/data/op_facts.fxg.zst");
  if (!loaded.ok()) FAIL(format_error(loaded.error()));
  const Module& module = **loaded;
  std::map<std::string, std::vector<std::string>> found;
  for (size_t i = 0; i < module.num_graphs(); ++i) {
    const Graph& graph = module.graph(GraphId(i));
    for (const NodeId node : graph.nodes()) {
      const Arg* facts = graph.meta_entry(node, "executed");
      if (facts != nullptr) Judge(graph, found).run(read_facts(module.text(facts->as_string())));
    }
  }
  for (const auto& [what, where] : found) {
    std::string text = what + ": " + std::to_string(where.size());
    for (const std::string& each : where) text += "\n    " + each;
    WARN(text);
  }
}

}  // namespace
}  // namespace fxopt
