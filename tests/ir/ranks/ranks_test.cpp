#include "ir/ranks/ranks.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/parse.h"

namespace fxopt {
namespace {

// A rank's graph: groups, one per line, then calls on %x, with other nodes between them.
struct Rank {
  int64_t rank;
  std::string groups, body;
};

std::string collective(const std::string& name, const std::string& call) {
  return "  %" + name + ": f32[4] = _c10d_functional." + call + "\n  %w_" + name +
         ": f32[4] = _c10d_functional.wait_tensor.default(%" + name + ")\n";
}
std::string reduce(const std::string& name, const std::string& group) {
  return collective(name, "all_reduce.default(%x, \"sum\", \"" + group + "\")");
}
std::string group(const std::string& uid, const std::string& ranks) {
  return "process_group {uid=\"" + uid + "\", ranks=[" + ranks + "]}\n";
}

RankReport compare(const std::vector<Rank>& ranks) {
  std::vector<RankTrace> traces;
  for (const Rank& rank : ranks) {
    const std::unique_ptr<Module> module =
        parse(rank.groups + "graph @main {kind=inference} {\n  %x: f32[4] = placeholder()\n" + rank.body +
              "  return (%x,)\n}\n");
    traces.push_back(trace_rank(*module, rank.rank, "rank" + std::to_string(rank.rank)));
  }
  return compare_ranks(traces);
}

std::string first_of(const RankReport& report) { return report.conflicts.empty() ? "" : report.conflicts.front().text; }

TEST_CASE("ranks: the same calls in the same order agree", "[ranks]") {
  const std::string groups = group("g", "0, 1") + group("h", "0, 1");
  const std::string body = reduce("a", "g") + reduce("b", "h") + reduce("c", "g");
  const RankReport report = compare({{0, groups, body}, {1, groups, body}});
  CHECK(first_of(report).empty());
  REQUIRE(report.rows.size() == 2);
  CHECK(report.rows[0].calls == 2);
  CHECK(report.rows[1].calls == 1);
}

TEST_CASE("ranks: other calls, types, sizes, reductions and numbers of calls are found", "[ranks]") {
  const std::string groups = group("g", "0, 1");
  const std::string own = reduce("a", "g") + reduce("b", "g");
  const auto against = [&](const std::string& body) {
    return first_of(compare({{0, groups, own}, {1, groups, body}}));
  };
  const std::string call =
      "group 'g' (ranks 0, 1), call 2: rank 0 issues %b (all_reduce f32 x 4 sum), but rank 1 issues %b (";
  CHECK(against(reduce("a", "g") + collective("b", "all_reduce.default(%x, \"max\", \"g\")")) ==
        call + "all_reduce f32 x 4 max)");
  CHECK(against(reduce("a", "g") + "  %h: f32[2] = aten.slice.Tensor(%x, 0, 0, 2)\n"
                                   "  %b: f32[2] = _c10d_functional.all_reduce.default(%h, \"sum\", \"g\")\n"
                                   "  %w_b: f32[2] = _c10d_functional.wait_tensor.default(%b)\n") ==
        call + "all_reduce f32 x 2 sum)");
  CHECK(against(reduce("a", "g") + "  %h: bf16[4] = aten._to_copy.default(%x, dtype=dtype(bf16))\n"
                                   "  %b: bf16[4] = _c10d_functional.all_reduce.default(%h, \"sum\", \"g\")\n"
                                   "  %w_b: bf16[4] = _c10d_functional.wait_tensor.default(%b)\n") ==
        call + "all_reduce bf16 x 4 sum)");
  CHECK(against(reduce("a", "g")) ==
        "group 'g' (ranks 0, 1), call 2: rank 0 issues %b (all_reduce f32 x 4 sum), but rank 1 issues only 1 of "
        "these calls");
  CHECK(against(reduce("c", "g") + reduce("d", "g")).empty());  // names do not count
  // Shapes with equal element counts agree.
  CHECK(against(reduce("a", "g") + "  %h: f32[2, 2] = aten.view.default(%x, [2, 2])\n"
                                   "  %b: f32[2, 2] = _c10d_functional.all_reduce.default(%h, \"sum\", \"g\")\n"
                                   "  %w_b: f32[2, 2] = _c10d_functional.wait_tensor.default(%b)\n")
            .empty());
}

TEST_CASE("ranks: a rank that issues nothing on its group is found", "[ranks]") {
  const std::string groups = group("g", "0, 1");
  CHECK(first_of(compare({{0, groups, reduce("a", "g")}, {1, groups, ""}})) ==
        "group 'g' (ranks 0, 1), call 1: rank 0 issues %a (all_reduce f32 x 4 sum), but rank 1 issues only 0 of "
        "these calls");
}

TEST_CASE("ranks: members without a file are told, and not compared", "[ranks]") {
  const RankReport report =
      compare({{0, group("g", "0, 1, 2"), reduce("a", "g")}, {2, group("g", "0, 1, 2"), reduce("a", "g")}});
  CHECK(first_of(report).empty());
  REQUIRE(report.rows.size() == 1);
  CHECK(report.rows[0].missing == std::vector<int64_t>{1});
}

TEST_CASE("ranks: groups that members know differently, and that a rank is not a member of", "[ranks]") {
  CHECK(first_of(compare({{0, group("g", "0, 1"), reduce("a", "g")}, {1, group("g", "1, 0"), reduce("a", "g")}})) ==
        "rank 1 lists group 'g' (ranks 1, 0), but rank 0 lists group 'g' (ranks 0, 1)");
  CHECK(first_of(compare({{0, group("g", "1, 2"), reduce("a", "g")}})) ==
        "rank 0 issues calls on group 'g' (ranks 1, 2), of which it is not a member");
}

TEST_CASE("ranks: two groups in two orders are a circle", "[ranks]") {
  const std::string groups = group("g", "0, 1") + group("h", "0, 1");
  const RankReport report =
      compare({{0, groups, reduce("a", "g") + reduce("b", "h")}, {1, groups, reduce("b", "h") + reduce("a", "g")}});
  CHECK(first_of(report) ==
        "a circle of 2 calls, each waiting for the next: rank 0 issues %a on group 'g' (ranks 0, 1) before %b on group "
        "'h' (ranks "
        "0, 1); rank 1 issues %b on group 'h' (ranks 0, 1) before %a on group 'g' (ranks 0, 1)");
}

// 64 ranks: 62 wait on the group of all ranks, two wait first on their own group.
TEST_CASE("ranks: 62 ranks against 2", "[ranks]") {
  std::string all = "0";
  for (int i = 1; i < 64; ++i) all += ", " + std::to_string(i);
  const std::string groups = group("all", all) + group("two", "62, 63");
  std::vector<Rank> ranks;
  for (int64_t rank = 0; rank < 62; ++rank) ranks.push_back({rank, group("all", all), reduce("a", "all")});
  ranks.push_back({62, groups, reduce("a", "all") + reduce("b", "two")});
  ranks.push_back({63, groups, reduce("b", "two") + reduce("a", "all")});
  const RankReport report = compare(ranks);
  CHECK(
      first_of(report).starts_with("a circle of 2 calls, each waiting for the next: rank 62 issues %a on group 'all'"));
  CHECK(report.conflicts.size() == 1);
  ranks.back().body = reduce("a", "all") + reduce("b", "two");
  CHECK(first_of(compare(ranks)).empty());
}

TEST_CASE("ranks: three groups in a circle that no two ranks see", "[ranks]") {
  const auto rank = [](int64_t number, const std::string& first, const std::string& second, const std::string& groups) {
    return Rank{number, groups, reduce("a", first) + reduce("b", second)};
  };
  const std::string f = group("f", "0, 1"), g = group("g", "1, 2"), h = group("h", "2, 0");
  CHECK(first_of(compare({rank(0, "h", "f", f + h), rank(1, "f", "g", f + g), rank(2, "g", "h", g + h)}))
            .starts_with("a circle of 3 calls"));
  CHECK(first_of(compare({rank(0, "f", "h", f + h), rank(1, "f", "g", f + g), rank(2, "g", "h", g + h)})).empty());
}

TEST_CASE("ranks: results that nobody waits for, and that are read before", "[ranks]") {
  const std::string groups = group("g", "0");
  const std::string call = "  %a: f32[4] = _c10d_functional.all_reduce.default(%x, \"sum\", \"g\")\n";
  CHECK(first_of(compare({{0, groups, call}})) == "rank 0: no wait completes %a");
  const std::string waits = "  %b: (f32[4], f32[4]) = cplib.flex_cp_allgather.default(%x, %x, 0, \"g\")\n";
  CHECK(first_of(compare({{0, groups, waits}})).empty());
  const std::string complete = "  %b: f32[4] = symm_mem.two_shot_all_reduce_.default(%x, \"sum\", \"g\")\n";
  CHECK(first_of(compare({{0, groups, complete}})).empty());
  CHECK(first_of(compare({{0, groups,
                           call + "  %n: f32[4] = aten.neg.default(%a)\n"
                                  "  %w: f32[4] = _c10d_functional.wait_tensor.default(%a)\n"}})) ==
        "rank 0: %n reads %a before a wait");
  CHECK(first_of(compare({{0, groups, call + "  %w: f32[4] = _c10d_functional.wait_tensor.default(%a)\n"}})).empty());
}

TEST_CASE("ranks: what an all-to-all gives is what the other takes", "[ranks]") {
  const std::string groups = group("g", "0, 1");
  const auto exchange = [](const std::string& taken, const std::string& given) {
    return "  %a: f32[4] = _c10d_functional.all_to_all_single.default(%x, [" + taken + "], [" + given + "], \"g\")\n" +
           "  %w: f32[4] = _c10d_functional.wait_tensor.default(%a)\n";
  };
  CHECK(first_of(compare({{0, groups, exchange("1, 3", "1, 3")}, {1, groups, exchange("3, 1", "3, 1")}})).empty());
  CHECK(first_of(compare({{0, groups, exchange("1, 3", "1, 3")}, {1, groups, exchange("2, 2", "3, 1")}})) ==
        "group 'g' (ranks 0, 1), call 1: rank 0 sends 3 rows to rank 1 in %a, but rank 1 expects 2 rows in %a");
}

TEST_CASE("ranks: sends and receives are matched in order", "[ranks]") {
  const std::string groups = group("g", "0, 1");
  const auto message = [](const std::string& name, const std::string& op, int peer, int tag) {
    return collective(name, op + ".default(%x, " + std::to_string(peer) + ", " + std::to_string(tag) + ", \"g\")");
  };
  const std::string send = message("a", "isend", 1, 0), receive = message("b", "irecv", 0, 0);
  CHECK(first_of(compare({{0, groups, send}, {1, groups, receive}})).empty());
  CHECK(first_of(compare({{0, groups, send}, {1, groups, message("b", "irecv", 0, 7)}}))
            .ends_with("but the other rank issues no matching call; the other rank issues %b with tag 7, not 0"));
  CHECK(first_of(compare({{0, groups, send + message("c", "isend", 1, 0)}, {1, groups, receive}})) ==
        "group 'g' (ranks 0, 1), from rank 0 to rank 1, message 2: rank 0 issues %c (isend f32 x 4), but the other "
        "rank issues no matching call");
  // A message before a reduction on one rank and after it on the other.
  CHECK(first_of(compare({{0, groups, send + reduce("r", "g")}, {1, groups, reduce("r", "g") + receive}}))
            .starts_with("a circle of 2 calls"));
}

TEST_CASE("ranks: equal calls that stand for other ones on another rank", "[ranks]") {
  const std::string groups = group("g", "0, 1");
  const auto made = [](const std::string& name, const std::string& origins, const std::string& uid) {
    std::string text = reduce(name, "g");
    std::string list;
    for (const char origin : origins) {
      list += std::string(list.empty() ? "" : ", ") + "{graph=\"main\", uid=" + origin +
              ", kind=replaced, pass=\"bucket\"}";
    }
    return text.insert(text.find('\n'), " {uid=" + uid + ", origins=[" + list + "]}");
  };
  const std::string one = made("a", "13", "20") + made("b", "24", "30");
  CHECK(first_of(compare({{0, groups, one}, {1, groups, one}})).empty());
  // Origins are compared by order, not by uid: the other rank has more nodes.
  CHECK(first_of(compare({{0, groups, one}, {1, groups, made("a", "37", "40") + made("b", "58", "50")}})).empty());
  CHECK(first_of(compare({{0, groups, one}, {1, groups, made("a", "12", "20") + made("b", "34", "30")}})) ==
        "group 'g' (ranks 0, 1), call 1: rank 0 issues %a (all_reduce f32 x 4 sum) for original call 1, 3 of the "
        "group, but rank 1 issues %a (all_reduce f32 x 4 sum) for original call 1, 2");
  // The members of the first bucket are in another order in the buffer.
  const std::string swapped = made("a", "31", "20") + made("b", "24", "30");
  CHECK(
      first_of(compare({{0, groups, one}, {1, groups, swapped}}))
          .ends_with("for original call 1, 3 of the group, but rank 1 issues %a (all_reduce f32 x 4 sum) for original "
                     "call 3, 1"));
  CHECK(first_of(compare({{0, groups, swapped}, {1, groups, swapped}})).empty());
  const auto name = [&groups](const std::string& body) {
    const std::unique_ptr<Module> module =
        parse(groups + "graph @main {kind=inference} {\n  %x: f32[4] = placeholder()\n" + body + "  return (%x,)\n}\n");
    return name_of_calls(trace_rank(*module, 0, ""));
  };
  CHECK(name(one).size() == 32);
  CHECK(name(one) == name(made("a", "37", "40") + made("b", "58", "50")));
  CHECK(name(one) == name(swapped));
  CHECK(name(one) != name(made("a", "12", "20") + made("b", "34", "30")));
  CHECK(name(one) != name(reduce("a", "g") + reduce("b", "g")));
  CHECK(name("").empty());
  // Two swapped calls.
  const std::string plain = reduce("a", "g") + reduce("b", "g"), turned = reduce("b", "g") + reduce("a", "g");
  CHECK(first_of(compare({{0, groups, plain}, {1, groups, plain}})).empty());
  const std::string first = "  %a: f32[4] = _c10d_functional.all_reduce.default(%x, \"sum\", \"g\") {uid=9}\n" +
                            std::string("  %w_a: f32[4] = _c10d_functional.wait_tensor.default(%a) {uid=10}\n");
  const std::string second = "  %b: f32[4] = _c10d_functional.all_reduce.default(%x, \"sum\", \"g\") {uid=11}\n" +
                             std::string("  %w_b: f32[4] = _c10d_functional.wait_tensor.default(%b) {uid=12}\n");
  CHECK(first_of(compare({{0, groups, first + second}, {1, groups, second + first}}))
            .find("for original call 1 of the group") != std::string::npos);
}

TEST_CASE("ranks: what a batch sends and receives begins together", "[ranks]") {
  const std::string groups = group("g", "0, 1");
  const auto batch = [](const std::string& kinds, int peer) {
    return "  %b = _c10d_functional.batch_p2p_ops.default([" + kinds + "], [" + std::to_string(peer) + ", " +
           std::to_string(peer) + "], [0, 0], [%x, %x], \"g\")\n" +
           "  %p: f32[4] = operator.getitem(%b, 0)\n  %w: f32[4] = _c10d_functional.wait_tensor.default(%p)\n"
           "  %q: f32[4] = operator.getitem(%b, 1)\n  %v: f32[4] = _c10d_functional.wait_tensor.default(%q)\n";
  };
  const std::string both = "\"isend\", \"irecv\"", turned = "\"irecv\", \"isend\"", sends = "\"isend\", \"isend\"";
  CHECK(first_of(compare({{0, groups, batch(both, 1)}, {1, groups, batch(turned, 0)}})).empty());
  CHECK(first_of(compare({{0, groups, batch(both, 1)}, {1, groups, batch(both, 0)}})).empty());
  CHECK(first_of(compare({{0, groups, batch(both, 1)}, {1, groups, batch(sends, 0)}}))
            .ends_with("but the other rank issues no matching call"));
  // Issued one by one, each rank waits for the other to receive.
  const std::string send = collective("s", "isend.default(%x, 1, 0, \"g\")"),
                    to_0 = collective("s", "isend.default(%x, 0, 0, \"g\")");
  const std::string receive = collective("r", "irecv.default(%x, 1, 0, \"g\")"),
                    of_0 = collective("r", "irecv.default(%x, 0, 0, \"g\")");
  CHECK(first_of(compare({{0, groups, send + receive}, {1, groups, to_0 + of_0}})).starts_with("a circle of 2 calls"));
  CHECK(first_of(compare({{0, groups, batch(both, 1)}, {1, groups, to_0 + of_0}})).empty());
}

}  // namespace
}  // namespace fxopt
