// Random graphs with collectives of two groups through `bucket`, judged by what does not know how it plans: the prover, the caps
// counted again from the written graph, and for what stays alone a merge that is tried.

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ir/alias/sizes.h"
#include "ir/check/verify.h"
#include "ir/io/io.h"
#include "passes/collective/bucket_plan.h"
#include "passes/pipeline/pipeline.h"
#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

class RandomText {
 public:
  explicit RandomText(uint64_t seed) : random_(seed) {}

  std::string run() {
    text_ =
        "process_group {uid=\"g\", ranks=[0, 1]}\nprocess_group {uid=\"h\", ranks=[0, 1]}\ngraph @main "
        "{kind=inference} {\n";
    for (uint64_t i = 0, count = 3 + below(8); i < count; ++i) {
      add(2 * (1 + below(16)), "placeholder()" + std::string(below(3) > 0 ? " {input={role=parameter}}" : ""));
    }
    for (uint64_t i = 0, count = 10 + below(60); i < count; ++i) step();
    text_ += "  return (";
    for (size_t i = 0; i < values_.size(); ++i) {
      if (i + 1 == values_.size() || below(3) == 0) text_ += (text_.ends_with('(') ? "%v" : ", %v") + std::to_string(i);
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
  // The later ones more often: long chains.
  size_t any() {
    return below(4) > 0 ? below(values_.size()) : values_.size() - 1 - below(std::min<size_t>(values_.size(), 5));
  }

  void step() {
    const size_t from = any();
    const std::string value = "%v" + std::to_string(from);
    switch (below(6)) {
      case 0:
        add(values_[from], "aten.neg.default(" + value + ")");
        return;
      case 1: {
        const size_t other = any();
        if (values_[other] == values_[from])
          add(values_[from], "aten.add.Tensor(" + value + ", %v" + std::to_string(other) + ")");
        return;
      }
      default:
        collect(value, values_[from]);
    }
  }

  void collect(const std::string& value, uint64_t elements) {
    const std::string group = below(3) > 0 ? "\"g\")" : "\"h\")";
    const std::string call = "_c10d_functional.";
    size_t start = 0;
    if (const uint64_t kind = below(3); kind == 0 && elements <= 64) {
      start = add(2 * elements, call + "all_gather_into_tensor.default(" + value + ", 2, " + group);
    } else if (kind == 1 && elements % 2 == 0) {
      start = add(elements / 2, call + "reduce_scatter_tensor.default(" + value + ", \"sum\", 2, " + group);
    } else {
      start = add(elements, call + "all_reduce.default(" + value + ", \"sum\", " + group);
    }
    const uint64_t made = values_.back();
    values_.pop_back();  // nobody else reads it
    text_.replace(text_.rfind("%v" + std::to_string(start)), 2 + std::to_string(start).size(),
                  "%c" + std::to_string(++calls_));
    add(made, call + "wait_tensor.default(%c" + std::to_string(calls_) + ")");
  }

  std::mt19937_64 random_;
  std::string text_;
  std::vector<uint64_t> values_;  // elements
  size_t calls_ = 0;
};

uint64_t num_graphs() {
  const char* given = std::getenv("FXOPT_RANDOM_GRAPHS");
  return given == nullptr ? 10000 : std::strtoull(given, nullptr, 10);
}

// Whether the nodes still have an order when the collective joins the bucket.
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

// What stays alone for a dependence cannot join the bucket that is named; what stays for the cap would break it.
void judge_alone(const Graph& graph, Facts& facts, const BucketPlan& plan, int64_t cap, Judged& judged) {
  std::map<std::string, size_t> bucket_of;
  for (size_t i = 0; i < plan.buckets.size(); ++i) {
    for (const size_t member : plan.buckets[i])
      bucket_of["%" + std::string(graph.name_of(plan.collectives[member].start))] = i;
  }
  for (size_t i = 0; i < plan.collectives.size(); ++i) {
    const Alone& alone = plan.alone[i];
    if (alone.code.empty()) continue;
    const size_t at = alone.text.rfind('%');
    const std::string named = at == std::string::npos ? "" : alone.text.substr(at, alone.text.find(' ', at) - at);
    if (alone.code == "dependence" && bucket_of.contains(named)) {
      INFO(graph.name_of(plan.collectives[i].start) << ": " << alone.text);
      CHECK_FALSE(has_order_with(graph, facts, plan, bucket_of[named], i));
      ++judged.refused_by_order;
    }
    if (alone.code == "cap" && bucket_of.contains(named) && alone.text.starts_with("with the bucket")) {
      std::vector<size_t> members = plan.buckets[bucket_of[named]];
      members.push_back(i);
      CHECK(bytes_together(plan, members) > cap);
      ++judged.refused_by_cap;
    }
  }
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
      if (seed % 10 == 0) judge_alone(module->main(), known, plan, cap, judged);
    }
    const std::string size = std::to_string(cap);
    const Result<Pipeline> pipeline =
        parse_pipeline("bucket{all-gather=" + size + ",reduce-scatter=" + size + ",all-reduce=" + size +
                       ",groups=all,max-span=" + std::to_string(options.max_span) + "}");
    REQUIRE(pipeline.ok());
    RunOptions run;
    run.numerics = Numerics::kReordersReductions;
    const Result<RunReport> report = run_pipeline(*module, *pipeline, run);
    if (!report.ok()) FAIL(format_error(report.error()));
    for (const Error& error : verify(*module)) FAIL_CHECK(format_error(error));
  }
  CHECK(judged.buckets > num_graphs());
  CHECK(judged.refused_by_order > num_graphs() / 100);
  CHECK(judged.refused_by_cap > num_graphs() / 100);
}

}  // namespace
}  // namespace fxopt
