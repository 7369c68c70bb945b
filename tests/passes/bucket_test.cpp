// Random graphs with collectives of two groups through `bucket`. The checks do not share its
// planner: the prover, the caps counted again in the output graph, and a trial merge for each
// collective that was not bucketed.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ir/check/equivalence/equivalence.h"
#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "ir/memory/memory.h"
#include "ir/values/values.h"
#include "passes/collective/bucket_plan.h"
#include "passes/pipeline/pipeline.h"
#include "tests/catch.h"
#include "tests/count.h"
#include "tests/must.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

class RandomText {
 public:
  // `returns_all`: every value is an output, so that a wrong value cannot stay unseen.
  explicit RandomText(uint64_t seed, bool returns_all = false) : random_(seed), returns_all_(returns_all) {}

  std::string run() {
    text_ = "process_group {uid=\"g\", ranks=[0, 1]}\nprocess_group {uid=\"h\", ranks=[0, 1]}\nrank {rank=" +
            std::to_string(below(2)) + ", world_size=2}\ngraph @main {kind=inference} {\n";
    for (uint64_t i = 0, count = 3 + below(8); i < count; ++i) {
      add(2 * (1 + below(16)), "placeholder()" + std::string(below(3) > 0 ? " {input={role=parameter}}" : ""));
    }
    for (uint64_t i = 0, count = 10 + below(60); i < count; ++i) step();
    text_ += "  return (";
    for (size_t i = 0; i < values_.size(); ++i) {
      if (returns_all_ || i + 1 == values_.size() || below(3) == 0)
        text_ += (text_.ends_with('(') ? "%v" : ", %v") + std::to_string(i);
    }
    return text_ + ",)\n}\n";
  }

 private:
  uint64_t below(uint64_t end) { return random_() % end; }

  size_t add(uint64_t elements, const std::string& call) {
    text_ += "  %v" + std::to_string(values_.size()) + ": f32[" + std::to_string(elements) + "] = " + call + "\n";
    values_.push_back(elements);
    return values_.size() - 1;
  }
  // Prefers later values, for long chains.
  size_t any() {
    return below(4) > 0 ? below(values_.size()) : values_.size() - 1 - below(std::min<size_t>(values_.size(), 5));
  }

  void step() {
    const size_t from = any();
    const std::string value = "%v" + std::to_string(from);
    const uint64_t kind = below(6);
    if (kind == 0 && text_.find("neg.default(" + value + ")") == std::string::npos)
      add(values_[from], "aten.neg.default(" + value + ")");
    if (kind == 1) {
      const size_t other = any();
      if (values_[other] == values_[from])
        add(values_[from], "aten.add.Tensor(" + value + ", %v" + std::to_string(other) + ")");
    }
    if (kind > 1) collect(value, values_[from]);
  }

  void collect(const std::string& value, uint64_t elements) {
    const std::string group = below(3) > 0 ? "\"g\")" : "\"h\")";
    const std::string call = "_c10d_functional.";
    if (text_.find("(" + value + ", ") != std::string::npos)
      return;  // one collective a value, so that different collectives differ
    size_t start = 0;
    if (const uint64_t kind = below(3); kind == 0 && elements <= 64) {
      start = add(2 * elements, call + "all_gather_into_tensor.default(" + value + ", 2, " + group);
    } else if (kind == 1 && elements % 2 == 0) {
      start = add(elements / 2, call + "reduce_scatter_tensor.default(" + value + ", \"sum\", 2, " + group);
    } else {
      start = add(elements, call + "all_reduce.default(" + value + ", \"sum\", " + group);
    }
    const uint64_t made = values_.back();
    values_.pop_back();  // only its wait uses it
    text_.replace(text_.rfind("%v" + std::to_string(start)), 2 + std::to_string(start).size(),
                  "%c" + std::to_string(++calls_));
    add(made, call + "wait_tensor.default(%c" + std::to_string(calls_) + ")");
  }

  std::mt19937_64 random_;
  bool returns_all_;
  std::string text_;
  std::vector<uint64_t> values_;  // elements
  size_t calls_ = 0;
};

uint64_t num_graphs() { return count_given("FXOPT_RANDOM_GRAPHS", 10000); }

// True if the nodes still have a valid order once the collective joins the bucket.
bool has_order_with(const Graph& graph, Facts& facts, BucketPlan plan, size_t bucket, size_t member) {
  plan.buckets[bucket].push_back(member);
  std::sort(plan.buckets[bucket].begin(), plan.buckets[bucket].end());
  return order_for(graph, facts, plan).size() == graph.num_nodes();
}

int64_t bytes_together(const BucketPlan& plan, const std::vector<size_t>& members) {
  int64_t sum = 0;
  for (const size_t member : members) sum += *plan.collectives[member].bytes();
  return sum;
}

struct Judged {
  size_t buckets = 0, refused_by_order = 0, refused_by_cap = 0;
};

// A collective left out for a dependence cannot join the named bucket. One left out for the cap
// would exceed it.
void check_left_out(const Graph& graph, Facts& facts, const BucketPlan& plan, int64_t cap, Judged& judged) {
  std::map<std::string, size_t> bucket_of;
  for (size_t i = 0; i < plan.buckets.size(); ++i) {
    for (const size_t member : plan.buckets[i])
      bucket_of["%" + std::string(graph.name_of(plan.collectives[member].start))] = i;
  }
  for (size_t i = 0; i < plan.collectives.size(); ++i) {
    const Obstacle& obstacles = plan.obstacles[i];
    if (obstacles.code.empty()) continue;
    const size_t at = obstacles.text.rfind('%');
    const std::string named =
        at == std::string::npos ? "" : obstacles.text.substr(at, obstacles.text.find_first_of(" ,", at) - at);
    if (obstacles.code == "dependence" && bucket_of.contains(named)) {
      INFO(graph.name_of(plan.collectives[i].start) << ": " << obstacles.text);
      CHECK_FALSE(has_order_with(graph, facts, plan, bucket_of[named], i));
      ++judged.refused_by_order;
    }
    if (obstacles.code == "cap" && bucket_of.contains(named) &&
        obstacles.text.starts_with("together with the bucket of ")) {
      std::vector<size_t> members = plan.buckets[bucket_of[named]];
      members.push_back(i);
      CHECK(bytes_together(plan, members) > cap);
      ++judged.refused_by_cap;
    }
  }
}

BucketForm form_of(uint64_t seed) { return static_cast<BucketForm>(seed % std::size(EnumNames<BucketForm>::kAll)); }

std::optional<RunReport> run_bucket(Module& module, int64_t cap, int64_t max_span, BucketForm form,
                                    const std::string& max_growth = "-1") {
  const std::string size = std::to_string(cap) + "B";
  const Pipeline pipeline =
      must(parse_pipeline("bucket{all-gather=" + size + ",reduce-scatter=" + size + ",all-reduce=" + size +
                          ",groups=all,max-growth=" + max_growth + ",max-span=" + std::to_string(max_span) +
                          ",form=" + std::string(name_of(form)) + "}"));
  RunOptions run;
  run.numerics = Numerics::kReordersReductions;
  Result<RunReport> report = run_pipeline(module, pipeline, run);
  if (report.ok()) return std::move(*report);
  FAIL_CHECK(format_error(report.error()));
  return std::nullopt;
}

// Edits a bucketed graph so that it computes something else. spoil() returns false, and changes
// nothing, if the edit has no place in the graph.
class Spoiler {
 public:
  Spoiler(Graph& graph, uint64_t seed) : graph_(graph), random_(seed) {}

  static constexpr int kKinds = 11;
  bool spoil(int kind) {
    if (kind == 0) return exchange_parts();
    if (kind == 1) return exchange_inputs("aten.cat.default");
    if (kind == 2) return lose_wait();
    if (kind == 3) return change_text("g", "h");
    if (kind == 4) return change_text("sum", "avg");
    if (kind == 5) return read_twice();
    if (kind == 6) return exchange_sizes();
    if (kind == 7) return exchange_given();
    if (kind == 8) return move_place();
    if (kind == 9) return lose_copy();
    return exchange_inputs("");
  }

 private:
  std::vector<NodeId> calls(std::string_view name) {
    std::vector<NodeId> found;
    for (const NodeId node : graph_.nodes()) {
      if (graph_[node].is_call() && graph_.op(node).name == name) found.push_back(node);
    }
    std::shuffle(found.begin(), found.end(), random_);
    return found;
  }
  bool is_bucket(NodeId node) const {
    const NodeExtra* extra = graph_.extra(node);
    return extra != nullptr && std::any_of(extra->origins.begin(), extra->origins.end(), [this](const Origin& origin) {
             return graph_.module().text(origin.pass) == "bucket";
           });
  }
  DimsId sizes(NodeId node) const {
    const Tensor* tensor = single_tensor(graph_, node);
    return tensor == nullptr ? DimsId() : tensor->sizes;
  }

  // Exchanges users of two parts of equal sizes of one split.
  bool exchange_parts() {
    for (const NodeId a : calls("operator.getitem")) {
      for (const NodeId b : calls("operator.getitem")) {
        if (a == b || first_argument(graph_, a) != first_argument(graph_, b) || sizes(a) != sizes(b)) continue;
        if (!graph_.has_users(a) || !graph_.has_users(b)) continue;
        const NodeId of_a = graph_.users(a)[0], of_b = graph_.users(b)[0];
        const NodeId first = graph_.position(of_a) < graph_.position(of_b) ? of_a : of_b;
        for (const NodeId part : {a, b}) {
          if (graph_.position(part) > graph_.position(first)) graph_.move_before(part, first);
        }
        const UseId read_a = graph_.edges(of_a)[0], read_b = graph_.edges(of_b)[0];
        graph_.set_use(read_a, b);
        graph_.set_use(read_b, a);
        return true;
      }
    }
    return false;
  }

  // Exchanges two different inputs of equal sizes in a call of `name`. An empty `name` stands for
  // `cat`, where the second input only replaces the first.
  bool exchange_inputs(std::string_view name) {
    for (const NodeId node : calls(name.empty() ? "aten.cat.default" : name)) {
      const std::vector<UseId> edges = graph_.edges(node);
      for (size_t i = 0; i + 1 < edges.size(); ++i) {
        const NodeId a = graph_.use(edges[i]).input, b = graph_.use(edges[i + 1]).input;
        if (a == b || sizes(a) != sizes(b) || first_argument(graph_, a) == first_argument(graph_, b)) continue;
        graph_.set_use(edges[i], b);
        if (!name.empty()) graph_.set_use(edges[i + 1], a);
        return true;
      }
    }
    return false;
  }

  // Exchanges two different inputs of equal sizes in a coalesced collective.
  bool exchange_given() {
    for (const std::string_view name :
         {"_c10d_functional.all_gather_into_tensor_coalesced.default", "_c10d_functional.all_reduce_coalesced.default",
          "_c10d_functional.reduce_scatter_tensor_coalesced.default"}) {
      if (exchange_inputs(name)) return true;
    }
    return false;
  }

  // Moves the input of a gather to the other rank's place in the buffer.
  bool move_place() {
    for (const NodeId slice : calls("aten.slice.Tensor")) {
      const std::vector<Arg> old(graph_.pool().args(graph_[slice].args).begin(),
                                 graph_.pool().args(graph_[slice].args).end());
      const int64_t width = old[3].as_int() - old[2].as_int(), begin = old[2].as_int() == 0 ? width : 0;
      const std::vector<Arg> changed = {old[0], old[1], Arg::integer(begin), Arg::integer(begin + width)};
      graph_.set_args(slice, graph_.pool().append(changed), graph_[slice].kwargs);
      for (const NodeId node : {slice, graph_.users(slice)[0]}) {
        Tensor tensor = *single_tensor(graph_, node);
        tensor.offset = Dim{begin, ExprId()};
        graph_[node].value = graph_.pool().append_value(graph_.pool().tensor_value(tensor));
      }
      return true;
    }
    return false;
  }

  // Drops a copy into a buffer that is sent.
  bool lose_copy() {
    for (const NodeId copy : calls("aten.copy_.default")) {
      graph_.replace_all_uses(copy, first_argument(graph_, copy));
      graph_.erase(copy);
      return true;
    }
    return false;
  }

  bool lose_wait() {
    for (const NodeId wait : calls("_c10d_functional.wait_tensor.default")) {
      if (!is_bucket(wait)) continue;
      graph_.replace_all_uses(wait, first_argument(graph_, wait));
      graph_.erase(wait);
      return true;
    }
    return false;
  }

  bool change_text(std::string_view from, std::string_view to) {
    for (const NodeId node : graph_.nodes()) {
      if (!graph_[node].is_call() || !graph_.op(node).has(Effect::kCollective) || !is_bucket(node)) continue;
      std::vector<Arg> args;
      bool is_met = false;
      for (const Arg& arg : graph_.pool().args(graph_[node].args)) {
        const bool is_it = arg.is(ArgKind::kString) && graph_.module().text(arg.as_string()) == from;
        args.push_back(is_it ? Arg::string(graph_.module().intern(to)) : arg);
        is_met = is_met || is_it;
      }
      if (!is_met) continue;
      graph_.set_args(node, graph_.pool().append(args), graph_[node].kwargs);
      return true;
    }
    return false;
  }

  // Copies another part of equal sizes instead.
  bool read_twice() {
    for (const NodeId copy : calls("aten.clone.default")) {
      const NodeId own = first_argument(graph_, copy);
      for (const NodeId other : calls("operator.getitem")) {
        const bool fits = other != own && graph_.position(other) < graph_.position(copy) &&
                          sizes(other) == sizes(own) && first_argument(graph_, other) == first_argument(graph_, own);
        if (!fits) continue;
        graph_.set_use(graph_.edges(copy)[0], other);
        return true;
      }
    }
    return false;
  }

  // Exchanges the first width of a split with a different one.
  bool exchange_sizes() {
    for (const NodeId split : calls("aten.split_with_sizes.default")) {
      const std::span<const Arg> args = graph_.pool().args(graph_[split].args);
      std::vector<Arg> widths(graph_.pool().children(args[1]).begin(), graph_.pool().children(args[1]).end());
      const auto unlike = std::find_if(widths.begin(), widths.end(),
                                       [&](const Arg& width) { return width.as_int() != widths[0].as_int(); });
      if (unlike == widths.end()) continue;
      std::iter_swap(widths.begin(), unlike);
      std::vector<Arg> changed(args.begin(), args.end());
      changed[1] = Arg::children(ArgKind::kList, graph_.pool().append(widths));
      graph_.set_args(split, graph_.pool().append(changed), graph_[split].kwargs);
      return true;
    }
    return false;
  }

  Graph& graph_;
  std::mt19937_64 random_;
};

TEST_CASE("bucket: what is spoiled afterwards is not proved", "[passes][bucket][random]") {
  size_t spoiled[Spoiler::kKinds] = {};
  for (uint64_t seed = 1; seed <= num_graphs() / 10; ++seed) {
    const std::string text = RandomText(seed, true).run();
    const std::unique_ptr<Module> before = parse(text), after = parse(text);
    const std::optional<RunReport> report = run_bucket(*after, int64_t{32} << seed % 7, 0, form_of(seed));
    if (!report.has_value() || !report->steps[0].result.changed()) continue;
    ProofOptions options;
    options.numerics = Numerics::kReordersReductions;
    // Claims prove nothing by themselves, so extra claims are put on every node of both graphs.
    std::vector<Claim> claims = report->steps[0].result.claims();
    std::vector<Claim> wild = claims;
    for (const Module* module : {before.get(), after.get()}) {
      for (const NodeId node : module->main().nodes()) {
        wild.push_back(
            {"main", module->main()[node].uid, seed % 2 == 0 ? RewriteRule::kBucket : RewriteRule::kBucketedReduction});
      }
    }
    for (int kind = 0; kind < Spoiler::kKinds; ++kind) {
      const std::unique_ptr<Module> wrong = after->clone();
      if (!Spoiler(wrong->main(), seed).spoil(kind)) continue;
      ++spoiled[kind];
      for (const std::vector<Claim>* given : {&claims, &wild}) {
        const ModuleProof proof = Prover(*before, options, *given).prove(*wrong);
        INFO("seed " << seed << ", kind " << kind << (given == &wild ? ", wild" : ""));
        if (proof.answer == ProofAnswer::kProved) FAIL_CHECK(text << print_text(*wrong));
      }
    }
  }
  size_t all = 0;
  for (int kind = 0; kind < Spoiler::kKinds; ++kind) {
    INFO("kind " << kind);
    CHECK(spoiled[kind] > 0);
    all += spoiled[kind];
  }
  if (num_graphs() >= 10000) CHECK(all >= 500);
}

int64_t ideal_peak(const Module& module) {
  ModuleFacts facts(module);
  return analyze_memory(module.main(), facts.of(module.main()).storages()).peak_bytes();
}

TEST_CASE("bucket: random graphs keep the peak within its growth", "[passes][bucket][random]") {
  size_t parted = 0;
  for (uint64_t seed = 1; seed <= num_graphs() / 5; ++seed) {
    const std::string text = RandomText(seed).run();
    const std::unique_ptr<Module> free = parse(text), held = parse(text);
    const int64_t before = ideal_peak(*free), limit = before + before / 10;
    INFO("seed " << seed << "\n" << text);
    if (!run_bucket(*free, 4096, 0, form_of(seed)).has_value()) return;
    if (!run_bucket(*held, 4096, 0, form_of(seed), "0.1").has_value()) return;
    CHECK(ideal_peak(*held) <= limit);
    parted += ideal_peak(*free) > limit ? 1 : 0;
  }
  CHECK(parted > num_graphs() / 50);
}

TEST_CASE("bucket: random graphs keep caps, order and what they compute", "[passes][bucket][random]") {
  Judged judged;
  for (uint64_t seed = 1; seed <= num_graphs(); ++seed) {
    const std::string text = RandomText(seed).run();
    const int64_t cap = 32 << seed % 7;
    BucketOptions options;
    options.all_gather = options.reduce_scatter = options.all_reduce = {cap};
    options.groups = BucketGroups::kAll;
    options.max_span = seed % 3 == 0 ? 10 : 0;
    INFO("seed " << seed << ", cap " << cap << "\n" << text);
    const std::unique_ptr<Module> module = parse(text);
    {
      ModuleFacts facts(*module);
      Facts& known = facts.of(module->main());
      const BucketPlan plan = plan_buckets(module->main(), known, options, {});
      CHECK(order_for(module->main(), known, plan).size() == module->main().num_nodes());
      for (const std::vector<size_t>& bucket : plan.buckets) CHECK(bytes_together(plan, bucket) <= cap);
      judged.buckets += plan.buckets.size();
      if (seed % 5 == 0) check_left_out(module->main(), known, plan, cap, judged);
    }
    if (!run_bucket(*module, cap, options.max_span, form_of(seed)).has_value()) return;
    for (const Error& error : verify(*module)) FAIL_CHECK(format_error(error));
  }
  CHECK(judged.buckets > num_graphs());
  CHECK(judged.refused_by_order > num_graphs() / 100);
  CHECK(judged.refused_by_cap > num_graphs() / 100);
}

}  // namespace
}  // namespace fxopt
