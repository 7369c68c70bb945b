// Pairs of graphs, one just inside the provable and one just outside: the second one differs or is
// undecided.
#include "ir/check/equivalence/equivalence.h"

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/parse.h"
#include "tests/prove.h"

namespace fxopt {
namespace {

// The first line of the answer, and the first new call.
std::string answer(const std::string& before, const std::string& after, const ProofOptions& options = ProofOptions(),
                   const std::string& attributes = "") {
  const std::unique_ptr<Module> a = parse("graph @g " + attributes + "{\n" + before + "}");
  const std::unique_ptr<Module> b = parse("graph @g " + attributes + "{\n" + after + "}");
  Prover prover(*a, options);
  const ModuleProof proof = prover.prove(*b);
  if (proof.answer == ProofAnswer::kProved) return "proved";
  if (proof.answer == ProofAnswer::kUndecided) return "undecided";
  std::string out = proof.differences.front().what;
  if (proof.first_new.is_valid()) out += " at %" + std::string(b->main().name_of(proof.first_new));
  return out;
}

// The same for a graph that autograd does not differentiate.
std::string traced_answer(const std::string& before, const std::string& after) {
  return answer(before, after, ProofOptions(), "{kind=inference} ");
}

const std::string kX = "%x: f32[4, 4] = placeholder()\n";
const std::string kY = "%y: f32[4, 4] = placeholder()\n";

TEST_CASE("proof: names and places do not matter, arguments do", "[equivalence]") {
  const std::string before = kX + kY +
                             "%a: f32[4, 4] = aten.add.Tensor(%x, %y)\n%b: f32[4, 4] = aten.neg.default(%x)\n"
                             "return (%a, %b)";
  CHECK(answer(before, kX + kY +
                           "%n: f32[4, 4] = aten.neg.default(%x)\n%s: f32[4, 4] = aten.add.Tensor(%x, %y, alpha=1)\n"
                           "return (%s, %n)") == "proved");
  CHECK(answer(before, kX + kY +
                           "%n: f32[4, 4] = aten.neg.default(%x)\n%s: f32[4, 4] = aten.add.Tensor(%x, %y, alpha=2)\n"
                           "return (%s, %n)") == "output 0 at %s");
  CHECK(answer(before, kX + kY +
                           "%a: f32[4, 4] = aten.add.Tensor(%y, %x)\n%b: f32[4, 4] = aten.neg.default(%x)\n"
                           "return (%a, %b)") == "output 0 at %a");
  CHECK(answer(before, kX + kY +
                           "%a: f32[4, 4] = aten.add.Tensor(%x, %y)\n%b: f32[4, 4] = aten.neg.default(%x)\n"
                           "return (%b, %a)") == "output 0");
}

TEST_CASE("proof: a repeated call is the same value, a repeated draw is not", "[equivalence]") {
  const std::string sum = "%a: f32[4, 4] = aten.exp.default(%x)\n%s: f32[4, 4] = aten.mul.Tensor(%a, %a)\nreturn (%s,)";
  CHECK(answer(kX + sum, kX + "%a: f32[4, 4] = aten.exp.default(%x)\n%c: f32[4, 4] = aten.exp.default(%x)\n"
                              "%s: f32[4, 4] = aten.mul.Tensor(%a, %c)\nreturn (%s,)") == "proved");
  const std::string draw = "aten.rand_like.default(%x)\n";
  CHECK(answer(kX + "%a: f32[4, 4] = " + draw + "%s: f32[4, 4] = aten.mul.Tensor(%a, %a)\nreturn (%s,)",
               kX + "%a: f32[4, 4] = " + draw + "%c: f32[4, 4] = " + draw +
                   "%s: f32[4, 4] = aten.mul.Tensor(%a, %c)\nreturn (%s,)") == "output 0 at %c");
}

TEST_CASE("proof: a draw may go where the caller allows it", "[equivalence]") {
  const std::string before = kX +
                             "%a: f32[4, 4] = aten.rand_like.default(%x)\n%b: f32[4, 4] = aten.rand_like.default(%x)\n"
                             "return (%b,)";
  const std::string after = kX + "%b: f32[4, 4] = aten.rand_like.default(%x)\nreturn (%b,)";
  CHECK(answer(before, after) == "output 0");
  ProofOptions allowed;
  allowed.allow_dead_draws = true;
  CHECK(answer(before, after, allowed) == "proved");
  CHECK(answer(after, before, allowed) == "the random draws, or their order at %a");
}

TEST_CASE("proof: a read stays on its side of a write", "[equivalence]") {
  const std::string before = kX +
                             "%r: f32[4, 4] = aten.neg.default(%x)\n%w: f32[4, 4] = aten.add_.Tensor(%x, 1)\n"
                             "return (%r,)";
  CHECK(answer(before, kX + "%w: f32[4, 4] = aten.add_.Tensor(%x, 1)\n%r: f32[4, 4] = aten.neg.default(%x)\n"
                            "return (%r,)") == "output 0 at %r");
  CHECK(answer(before, kX + "%r: f32[4, 4] = aten.neg.default(%x)\nreturn (%r,)") == "the value of input x at the end");
  CHECK(answer(before, kX + "%c: f32[4, 4] = aten.clone.default(%x)\n%r: f32[4, 4] = aten.neg.default(%x)\n"
                            "%w: f32[4, 4] = aten.add_.Tensor(%c, 1)\nreturn (%r,)") ==
        "the value of input x at the end at %c");
}

TEST_CASE("proof: views are what they show, recorded sizes of the graph after are not believed", "[equivalence]") {
  const std::string before =
      kX +
      "%v: f32[16] = aten.view.default(%x, [16])\n%u: f32[2, 8] = aten.view.default(%v, [2, 8])\n"
      "%r: f32[2, 8] = aten.neg.default(%u)\nreturn (%r,)";
  CHECK(answer(before, kX + "%u: f32[2, 8] = aten.view.default(%x, [2, 8])\n%r: f32[2, 8] = aten.neg.default(%u)\n"
                            "return (%r,)") == "proved");
  CHECK(answer(before, kX + "%u: f32[2, 8] = aten.view.default(%x, [8, 2])\n%r: f32[2, 8] = aten.neg.default(%u)\n"
                            "return (%r,)") == "output 0 at %u");
}

TEST_CASE("proof: what shares memory still does", "[equivalence]") {
  const std::string before = kX + "%v: f32[16] = aten.view.default(%x, [16])\nreturn (%v, %x)";
  CHECK(answer(before, kX + "%v: f32[16] = aten.reshape.default(%x, [16])\nreturn (%v, %x)") == "proved");
  CHECK(answer(kX + kY + "%a: f32[4, 4] = aten.neg.default(%x)\n%b: f32[4, 4] = aten.neg.default(%x)\nreturn (%a, %b)",
               kX + kY + "%a: f32[4, 4] = aten.neg.default(%x)\nreturn (%a, %a)") ==
        "the tensors that share memory with output 1");
}

TEST_CASE("proof: a tensor that is handed over twice is one tensor", "[equivalence]") {
  const std::string twice = kX + "%v: f32[16] = aten.view.default(%x, [16])\nreturn (%v, %v)";
  const std::string views = kX +
                            "%v: f32[16] = aten.view.default(%x, [16])\n%u: f32[16] = aten.view.default(%x, [16])\n"
                            "return (%v, %u)";
  CHECK(answer(views, views) == "proved");
  CHECK(answer(twice, views) == "the values that are the same tensor object as output 1");
  CHECK(answer(views, twice) == "the values that are the same tensor object as output 1");
  CHECK(answer(kX + "%a: f32[4, 4] = aten.alias.default(%x)\nreturn (%a,)", kX + "return (%x,)") ==
        "the values that are the same tensor object as output 0");
}

TEST_CASE("proof: a dropout is a draw, although it may hand back its argument", "[equivalence]") {
  const std::string drop = "aten.dropout.default(%x, 0.5, True)\n";
  const std::string before = kX + "%a: f32[4, 4] = " + drop + "%s: f32[4, 4] = aten.mul.Tensor(%a, %a)\nreturn (%s,)";
  CHECK(answer(before, before) == "proved");
  CHECK(answer(before, kX + "%a: f32[4, 4] = " + drop + "%b: f32[4, 4] = " + drop +
                           "%s: f32[4, 4] = aten.mul.Tensor(%a, %b)\nreturn (%s,)") == "output 0 at %b");
}

TEST_CASE("proof: metadata that changes in place belongs to the tensor", "[equivalence]") {
  const std::string x = "%x: f32[2, 3] = placeholder()\n";
  const std::string before = x +
                             "%a: f32[2, 3] = aten.alias.default(%x)\n%t: f32[3, 2](1, 3) = aten.t_.default(%a)\n"
                             "%r: f32[3] = aten.sum.dim_IntList(%x, [0])\nreturn (%r,)";
  CHECK(answer(before, x + "%r: f32[3] = aten.sum.dim_IntList(%x, [0])\nreturn (%r,)") == "proved");
  CHECK(answer(before, x + "%t: f32[3, 2](1, 3) = aten.t_.default(%x)\n%r: f32[3] = aten.sum.dim_IntList(%x, [0])\n"
                           "return (%r,)") == "output 0 at %r");
}

// Slices of a buffer of eight rows: [0, 4), [4, 8) and [3, 7).
const std::string kBuffer =
    kX + kY +
    "%b: f32[8, 4] = aten.empty.memory_format([8, 4], dtype=dtype(f32))\n"
    "%l: f32[4, 4] = aten.slice.Tensor(%b, 0, 0, 4)\n%h: f32[4, 4](4, 1)+16 = aten.slice.Tensor(%b, 0, 4, 8)\n"
    "%m: f32[4, 4](4, 1)+12 = aten.slice.Tensor(%b, 0, 3, 7)\n";
const std::string kRead = "%r: f32[8, 4] = aten.neg.default(%b)\nreturn (%r,)";

TEST_CASE("proof: writes to parts that do not touch may stand in any order", "[equivalence]") {
  const std::string low = "%c: f32[4, 4] = aten.add_.Tensor(%l, %x)\n";
  const std::string high = "%d: f32[4, 4](4, 1)+16 = aten.mul_.Tensor(%h, %y)\n";
  const std::string middle = "%e: f32[4, 4](4, 1)+12 = aten.mul_.Tensor(%m, %y)\n";
  CHECK(traced_answer(kBuffer + low + high + kRead, kBuffer + high + low + kRead) == "proved");
  CHECK(traced_answer(kBuffer + low + middle + kRead, kBuffer + middle + low + kRead) == "output 0 at %e");
  // Under autograd, each write counts as a write to the whole buffer.
  CHECK(answer(kBuffer + low + high + kRead, kBuffer + high + low + kRead) == "output 0 at %d");
  // A read of one slice does not see a write to another.
  const std::string one = "%r: f32[4, 4] = aten.neg.default(%l)\n";
  const std::string end = "return (%r, %b)";
  CHECK(traced_answer(kBuffer + one + high + end, kBuffer + high + one + end) == "proved");
  CHECK(traced_answer(kBuffer + one + middle + end, kBuffer + middle + one + end) == "output 0 at %r");
}

TEST_CASE("proof: what is written over is gone", "[equivalence]") {
  const std::string low = "%c: f32[4, 4] = aten.add_.Tensor(%l, %x)\n";
  const std::string zero = "%z: f32[4, 4] = aten.zero_.default(%l)\n";
  const std::string copy = "%w: f32[4, 4] = aten.copy_.default(%l, %y)\n";
  CHECK(traced_answer(kBuffer + low + copy + kRead, kBuffer + copy + kRead) == "proved");
  CHECK(traced_answer(kBuffer + zero + copy + kRead, kBuffer + copy + kRead) == "proved");
  CHECK(traced_answer(kBuffer + copy + low + kRead, kBuffer + copy + kRead) == "output 0 at %r");
  // All rows but one.
  const std::string most = "%k: f32[3, 4] = aten.slice.Tensor(%b, 0, 0, 3)\n%z: f32[3, 4] = aten.zero_.default(%k)\n";
  CHECK(traced_answer(kBuffer + low + most + kRead, kBuffer + most + kRead) == "output 0 at %r");
}

TEST_CASE("proof: what lies scattered is no part of its own", "[equivalence]") {
  const std::string head = kX + kY +
                           "%b: f32[4, 4] = aten.empty.memory_format([4, 4], dtype=dtype(f32))\n"
                           "%l: f32[4](4) = aten.select.int(%b, 1, 0)\n%h: f32[4](4)+1 = aten.select.int(%b, 1, 1)\n";
  const std::string low = "%c: f32[4](4) = aten.mul_.Tensor(%l, 2)\n";
  const std::string high = "%d: f32[4](4)+1 = aten.mul_.Tensor(%h, 3)\n";
  const std::string read = "%r: f32[4, 4] = aten.neg.default(%b)\nreturn (%r,)";
  // Columns interleave: the results are equal, but the prover cannot show it.
  CHECK(traced_answer(head + low + high + read, head + high + low + read) == "output 0 at %d");
  // An overwrite with gaps leaves old content that counts.
  CHECK(traced_answer(head + high + "%z: f32[4](4) = aten.zero_.default(%l)\n" + read,
                      head + "%z: f32[4](4) = aten.zero_.default(%l)\n" + read) == "output 0 at %z");
}

TEST_CASE("proof: a buffer that copies fill is the concatenation of what they copy", "[equivalence]") {
  const std::string head = kX + kY;
  const std::string buffer =
      "%b: f32[8, 4] = aten.empty.memory_format([8, 4], dtype=dtype(f32))\n"
      "%l: f32[4, 4] = aten.slice.Tensor(%b, 0, 0, 4)\n%h: f32[4, 4](4, 1)+16 = aten.slice.Tensor(%b, 0, 4, 8)\n"
      "%k: f32[4, 4] = aten.copy_.default(%l, %x)\n";
  const std::string second = "%j: f32[4, 4](4, 1)+16 = aten.copy_.default(%h, %y)\n";
  const std::string read = "%r: f32[8, 4] = aten.neg.default(%b)\nreturn (%r,)";
  const std::string together = "%b: f32[8, 4] = aten.cat.default([%x, %y])\n";
  CHECK(traced_answer(head + together + read, head + buffer + second + read) == "proved");
  CHECK(traced_answer(head + buffer + second + read, head + together + read) == "proved");
  // Reversed order, with a gap, along the other dimension, of another dtype, after a write.
  CHECK(traced_answer(head + together + read, head + "%b: f32[8, 4] = aten.cat.default([%y, %x])\n" + read) ==
        "output 0 at %b");
  CHECK(traced_answer(head + together + read, head + buffer + read) == "output 0 at %b");
  const std::string wide = "%b: f32[4, 8] = aten.cat.default([%x, %y], 1)\n";
  const std::string read_wide = "%r: f32[4, 8] = aten.neg.default(%b)\nreturn (%r,)";
  CHECK(traced_answer(head + wide + read_wide, head + wide + read_wide) == "proved");
  CHECK(traced_answer(head + wide + read_wide, head + together + "%v: f32[4, 8] = aten.view.default(%b, [4, 8])\n" +
                                                   "%r: f32[4, 8] = aten.neg.default(%v)\nreturn (%r,)") ==
        "output 0 at %b");
  const std::string half = "%y: f16[4, 4] = placeholder()\n";
  CHECK(traced_answer(kX + half + together + read, kX + half + buffer + second + read) == "output 0 at %b");
  const std::string write = "%w: f32[4, 4] = aten.add_.Tensor(%y, 1)\n";
  CHECK(traced_answer(head + together + write + read, head + buffer + write + second + read) == "output 0 at %b");
}

// The answer, with claims of the rewrite rule kPart at nodes of these uids, then the refused
// claims.
std::string claimed(const std::string& before, const std::string& after, const std::vector<uint64_t>& uids,
                    const std::string& attributes = "{kind=inference} ") {
  const std::unique_ptr<Module> a = parse("graph @g " + attributes + "{\n" + before + "}");
  const std::unique_ptr<Module> b = parse("graph @g " + attributes + "{\n" + after + "}");
  std::vector<Claim> claims;
  for (const uint64_t uid : uids) claims.push_back({"g", uid, RewriteRule::kPart});
  const ModuleProof proof = Prover(*a, ProofOptions(), claims).prove(*b);
  std::string out = proof.answer == ProofAnswer::kProved ? "proved" : proof.differences.front().what;
  for (const std::string& refused : proof.refused_claims) out += "; " + refused;
  return out;
}

TEST_CASE("proof: by the law of parts, what is cut from a concatenation is what was put there", "[equivalence]") {
  const std::string head = kX + kY + "%b: f32[8, 4] = aten.cat.default([%x, %y])\n";
  const auto cut = [&](const std::string& bounds, const std::string& offset, const std::string& between = "") {
    return head + between + "%h: f32[4, 4](4, 1)" + offset + " = aten.slice.Tensor(%b, 0, " + bounds + ") {uid=7}\n" +
           "%r: f32[4, 4] = aten.neg.default(%h)\nreturn (%r,)";
  };
  const std::string direct = kX + kY + "%r: f32[4, 4] = aten.neg.default(%y)\nreturn (%r,)";
  CHECK(claimed(cut("4, 8", "+16"), direct, {7}) == "proved");
  CHECK(claimed(direct, cut("4, 8", "+16"), {7}) == "proved");
  CHECK(claimed(cut("4, 8", "+16"), direct, {}) == "output 0");
  CHECK(claimed(cut("4, 8", "+16"), direct, {7}, "") ==
        "output 0; part at %h of the input graph: autograd may run through the graph, and the slice has its own "
        "history");
  CHECK(claimed(cut("0, 4", ""), direct, {7}) == "output 0");  // the other tensor
  CHECK(claimed(cut("3, 7", "+12"), direct, {7}) ==
        "output 0; part at %h of the input graph: no tensor was copied to exactly the bytes of the value");
  // A write in between: the copy holds the old content, the read sees the new one.
  const std::string write = "%w: f32[4, 4] = aten.add_.Tensor(%y, 1)\n";
  CHECK(claimed(cut("4, 8", "+16", write), kX + kY + write + "%r: f32[4, 4] = aten.neg.default(%y)\nreturn (%r,)",
                {7}) == "output 0");
  CHECK(claimed(cut("4, 8", "+16", "%w: f32[8, 4] = aten.add_.Tensor(%b, 1)\n"), direct, {7}) ==
        "output 0; part at %h of the input graph: no tensor was copied to exactly the bytes of the value");
  // In another shape it has other strides.
  const std::string square = "%x: f32[2, 8] = placeholder()\n%y: f32[2, 8] = placeholder()\n";
  CHECK(claimed(square + "%b: f32[4, 8] = aten.cat.default([%x, %y])\n%v: f32[32] = aten.view.default(%b, [32])\n" +
                    "%h: f32[16]+16 = aten.slice.Tensor(%v, 0, 16, 32) {uid=7}\n" +
                    "%r: f32[16] = aten.neg.default(%h)\nreturn (%r,)",
                square + "%r: f32[2, 8] = aten.neg.default(%y)\nreturn (%r,)", {7}) ==
        "output 0; part at %h of the input graph: the slice and the tensor copied there differ in sizes");
}

TEST_CASE("proof: a value that a law names still lies where it lies", "[equivalence]") {
  const std::string head = kX + kY + "%b: f32[8, 4] = aten.cat.default([%x, %y])\n";
  const std::string cut = "%h: f32[4, 4](4, 1)+16 = aten.slice.Tensor(%b, 0, 4, 8) {uid=7}\n";
  // A returned slice shares memory with the buffer, not with the tensor copied into it.
  CHECK(claimed(head + cut + "return (%h, %b)", head + "return (%y, %b)", {7}) ==
        "the tensors that share memory with output 0");
  CHECK(claimed(head + cut + "%c: f32[4, 4] = aten.clone.default(%h)\nreturn (%c, %b)",
                head + "%c: f32[4, 4] = aten.clone.default(%y)\nreturn (%c, %b)", {7}) == "proved");
  // A write through the slice writes the buffer. A write to the buffer makes the slice's content
  // unknown.
  const std::string write = "%w: f32[4, 4](4, 1)+16 = aten.add_.Tensor(%h, 1)\n";
  CHECK(claimed(head + cut + write + "%r: f32[8, 4] = aten.neg.default(%b)\nreturn (%r,)",
                head + "%r: f32[8, 4] = aten.neg.default(%b)\nreturn (%r,)", {7}) == "output 0");
  const std::string over = "%w: f32[8, 4] = aten.zero_.default(%b)\n";
  CHECK(claimed(head + cut + over + "%r: f32[4, 4] = aten.neg.default(%h)\nreturn (%r,)",
                head + "%r: f32[4, 4] = aten.neg.default(%y)\nreturn (%r,)", {7}) == "output 0");
  // as_strided addresses the buffer's memory.
  const std::string strided =
      "%s: f32[4] = aten.as_strided.default(%h, [4], [1], 0)\n%r: f32[4] = aten.neg.default(%s)\n";
  CHECK(claimed(head + cut + strided + "return (%r,)",
                head + "%s: f32[4] = aten.as_strided.default(%y, [4], [1], 0)\n%r: f32[4] = aten.neg.default(%s)\n" +
                    "return (%r,)",
                {7}) == "output 0");
}

// Calls with the constants from `first` on, each returned.
std::string many_calls(int first, int count) {
  std::string calls, returned;
  for (int i = 0; i < count; ++i) {
    calls += "%c" + std::to_string(i) + ": f32[4, 4] = aten.add.Tensor(%x, " + std::to_string(first + i) + ")\n";
    returned += "%c" + std::to_string(i) + ", ";
  }
  return "graph @g {\n" + kX + calls + "return (" + returned + ")\n}";
}

TEST_CASE("proof: a collision of keys makes a false proof, never an alarm, as often as chance says", "[equivalence]") {
  // Among n pairs of different calls, n / 2^bits have equal keys: among 300,000 pairs 4.6 at 16
  // bits and 1172 at 8 bits. At 128 bits, n calls before and m calls after collide with a
  // probability of n * m / 2^128: 3 * 10^-27 for a million each.
  constexpr int kCalls = 50000;
  constexpr int kGraphs = 6;
  const std::unique_ptr<Module> before = parse(many_calls(0, kCalls));
  int num_equal_at_16 = 0, num_equal_at_8 = 0;
  for (int i = 1; i <= kGraphs; ++i) {
    const std::unique_ptr<Module> after = parse(many_calls(i * kCalls, kCalls));
    const auto num_equal = [&](uint32_t bits) {
      ProofOptions options;
      options.key_bits = bits;
      Prover prover(*before, options);
      CHECK(prover.prove(*before).answer == ProofAnswer::kProved);
      return kCalls - static_cast<int>(prover.prove(*after).differences.size());
    };
    CHECK(num_equal(128) == 0);
    num_equal_at_16 += num_equal(16);
    num_equal_at_8 += num_equal(8);
  }
  CHECK(num_equal_at_16 == 8);
  CHECK(num_equal_at_8 == 1161);
}

const std::string kGather = "%g: f32[8, 4] = _c10d_functional.all_gather_into_tensor.default(%x, 2, \"0\")\n";

TEST_CASE("proof: collectives are awaited, and what they read is left alone", "[equivalence]") {
  const std::string wait = "%w: f32[8, 4] = _c10d_functional.wait_tensor.default(%g)\n";
  const std::string read = "%r: f32[8, 4] = aten.neg.default(%w)\nreturn (%r,)";
  const std::string before = kX + kGather + wait + read;
  CHECK(answer(before, before) == "proved");
  CHECK(answer(before, kX + kGather + "%r: f32[8, 4] = aten.neg.default(%g)\nreturn (%r,)") == "output 0 at %r");
  const std::string write = "%i: f32[4, 4] = aten.add_.Tensor(%x, 1)\n";
  CHECK(answer(kX + kGather + wait + write + read, kX + kGather + write + wait + read) == "output 0 at %w");
}

TEST_CASE("proof: an operator that nobody described keeps its place among its kind", "[equivalence]") {
  const std::string a = "%a: f32[4, 4] = mylib.log.default(%x)\n";
  const std::string b = "%b: f32[4, 4] = mylib.count.default(%y)\n";
  CHECK(answer(kX + kY + a + b + "return (%a, %b)", kX + kY + a + b + "return (%a, %b)") == "proved");
  CHECK(answer(kX + kY + a + b + "return (%a, %b)", kX + kY + b + a + "return (%a, %b)") != "proved");
}

TEST_CASE("proof: a view that nobody can calculate is undecided", "[equivalence]") {
  const std::string diagonal = "aten.diagonal.default(%x)\n";
  const std::string read = "%r: f32[4] = aten.neg.default(%u)\nreturn (%r,)";
  CHECK(answer(kX + "%u: f32[4](5) = " + diagonal + read, kX + "%u: f32[4](5) = " + diagonal + read) == "proved");
  CHECK(answer(kX + "%u: f32[4](5) = " + diagonal + read,
               kX + "%u: f32[4](5) = aten.diagonal.default(%x, 1)\n" + read) == "undecided");
}

// The answer for the step of the second text, compared with that of the first.
std::string step_answer(const std::string& before, const std::string& after, bool allow_no_backward = false) {
  const std::unique_ptr<Module> a = parse(before);
  const std::unique_ptr<Module> b = parse(after);
  ProofOptions options;
  options.as_step = true;
  options.allow_no_backward = allow_no_backward;
  Prover prover(*a, options);
  const ModuleProof proof = prover.prove(*b);
  if (proof.answer == ProofAnswer::kProved) return "proved";
  if (proof.answer == ProofAnswer::kUndecided) return "undecided: " + proof.missing;
  std::string out = proof.differences.front().what;
  if (!proof.first_new.is_valid()) return out;
  const Graph& graph = proof.step->graph(proof.step->find_graph(proof.graph));
  return out + " at %" + std::string(graph.name_of(proof.first_new));
}

// %p is a parameter, %t the tangent of the output; the second gradient is None.
std::string joint(const std::string& name = "%t") {
  return "graph @joint {kind=joint, num_forward_outputs=1} {\n" + kX + "%p: f32[4, 4] = placeholder()\n" + name +
         ": f32[4, 4] = placeholder()\n"
         "%s: f32[4, 4] = aten.sin.default(%x)\n%o: f32[4, 4] = aten.mul.Tensor(%s, %p)\n"
         "%c: f32[4, 4] = aten.cos.default(%x)\n%m: f32[4, 4] = aten.mul.Tensor(" +
         name + ", %p)\n%g: f32[4, 4] = aten.mul.Tensor(%m, %c)\nreturn (%o, %g, None)\n}\n";
}

std::string forward(const std::string& saved, const std::string& name = "forward") {
  return "graph @" + name + " {kind=forward, num_forward_outputs=1} {\n" + kX +
         "%p: f32[4, 4] = placeholder()\n"
         "%s: f32[4, 4] = aten.sin.default(%x)\n%o: f32[4, 4] = aten.mul.Tensor(%s, %p)\n"
         "%c: f32[4, 4] = aten.cos.default(%x)\nreturn (%o, " +
         saved + ")\n}\n";
}

std::string backward(const std::string& inputs, const std::string& calls, const std::string& returned = "%g, None") {
  std::string out = "graph @backward {kind=backward} {\n";
  for (const char name : inputs) {
    out += '%';
    out += name;
    out += ": f32[4, 4] = placeholder()\n";
  }
  return out + "%m: f32[4, 4] = aten.mul.Tensor(%t, %p)\n" + calls + "return (" + returned + ")\n}\n";
}

TEST_CASE("proof: a forward and a backward graph are the joint graph that was cut", "[equivalence][step]") {
  const std::string times_c = "%g: f32[4, 4] = aten.mul.Tensor(%m, %c)\n";
  const std::string cosine = "%c: f32[4, 4] = aten.cos.default(%x)\n";
  CHECK(step_answer(joint(), joint()) == "proved");
  CHECK(step_answer(joint(), forward("%p, %c") + backward("pct", times_c)) == "proved");
  CHECK(step_answer(forward("%p, %c") + backward("pct", times_c), joint()) == "proved");
  CHECK(step_answer(joint(), forward("%x, %p") + backward("xpt", cosine + times_c)) == "proved");  // recomputed
  // Another saved value, gradients in other places, a missing gradient, an input of another name, a
  // cut that is no step.
  CHECK(step_answer(joint(), forward("%s, %p") + backward("spt", "%g: f32[4, 4] = aten.mul.Tensor(%m, %s)\n")) ==
        "output 1 at %backward.g");
  CHECK(step_answer(joint(), forward("%p, %c") + backward("pct", times_c, "None, %g")) ==
        "the structure of the outputs");
  CHECK(step_answer(joint(), forward("%p, %c") + backward("pct", times_c, "None, None")) ==
        "the structure of the outputs");
  CHECK(step_answer(joint("%u"), forward("%p, %c") + backward("pct", times_c)) == "output 1 at %backward.m");
  CHECK(step_answer(joint(), forward("%p, %c") + forward("%p, %c", "again") + backward("pct", times_c))
            .starts_with("undecided: the step: "));
}

TEST_CASE("proof: what a step writes into its inputs is written wherever it was cut", "[equivalence][step]") {
  const std::string head = kX + "%b: f32[4, 4] = placeholder() {input={role=buffer, fqn=\"n.b\"}}\n";
  const std::string sum = "%n: f32[4, 4] = aten.add.Tensor(%b, %x)\n";
  const std::string gradient = "%g: f32[4, 4] = aten.mul.Tensor(%t, %b)\n";
  const auto whole = [&](const std::string& outputs, const std::string& returned) {
    return "graph @joint {kind=joint} {\n" + outputs + head + "%t: f32[4, 4] = placeholder()\n" + sum + gradient +
           "return (" + returned + ")\n}\n";
  };
  const std::string mutation = "output_spec {role=mutation, of=\"b\"}\n";
  const std::string grad = "output_spec {role=gradient}\n";
  const std::string cut = "graph @f {kind=forward} {\n" + mutation + "output_spec {role=saved_value}\n" + head + sum +
                          "return (%n, %b)\n}\ngraph @w {kind=backward} {\n%b: f32[4, 4] = placeholder()\n"
                          "%t: f32[4, 4] = placeholder()\n" +
                          gradient + "return (%g,)\n}\n";
  // Backward reads %b after the step's caller has written the new value into it. The joint graph
  // reads it before. PyTorch saves a copy to avoid this.
  CHECK(step_answer(whole(mutation + grad, "%n, %g"), cut) == "output 0 at %backward.g");
  CHECK(step_answer(whole("output_spec {role=user}\n" + grad, "%n, %g"), cut) ==
        "the structure of the outputs at %forward.copy_");
}

TEST_CASE("proof: where backward may be gone, forward is all of the joint graph", "[equivalence][step]") {
  const std::string head = kX + "%b: f32[4, 4] = placeholder() {input={role=buffer}}\n";
  const std::string tangent = "%t: f32[4, 4] = placeholder() {input={role=tangent}}\n";
  const std::string sine = "%s: f32[4, 4] = aten.sin.default(%x)\n", cosine = "%c: f32[4, 4] = aten.cos.default(%x)\n";
  const std::string write = "%w: f32[4, 4] = aten.copy_.default(%b, %s)\n";
  const std::string draw = "%r: f32[4, 4] = aten.rand.default([4, 4])\n";
  const std::string gradient =
      "%g: f32[4, 4] = aten.mul.Tensor(%t, %c)\n%v: f32[4, 4] = aten.copy_.default(%b, %g)\n"
      "%q: f32[4, 4] = aten.rand_like.default(%g)\n";
  const std::string whole = "graph @joint {kind=joint, num_forward_outputs=2} {\n" + head + tangent + sine + cosine +
                            write + draw + gradient + "return (%s, %r, %q, None)\n}\n";
  const auto half = [&](const std::string& inputs, const std::string& calls, const std::string& returned) {
    return "graph @f {kind=inference} {\n" + inputs + calls + "return (" + returned + ")\n}\n";
  };
  CHECK(step_answer(whole, half(head, sine + write + draw, "%s, %r"), true) == "proved");
  CHECK(step_answer(whole, half(head, sine + draw + write, "%s, %r"), true) == "proved");
  // Not allowed; a missing output, another output; a lost write, a lost draw, an added draw; an
  // extra input.
  CHECK(step_answer(whole, half(head, sine + write + draw, "%s, %r")) == "the number of inputs: 2 instead of 3");
  CHECK(step_answer(whole, half(head, sine + write + draw, "%s,"), true) == "the structure of the outputs");
  CHECK(step_answer(whole, half(head, sine + cosine + write + draw, "%c, %r"), true) == "output 0");
  CHECK(step_answer(whole, half(head, sine + draw, "%s, %r"), true) == "the value of input b at the end");
  CHECK(step_answer(whole, half(head, sine + write + "%r: f32[4, 4] = aten.neg.default(%s)\n", "%s, %r"), true) ==
        "output 1 at %inference.r");
  CHECK(step_answer(whole, half(head, sine + write + draw + "%q: f32[4, 4] = aten.rand.default([4, 4])\n", "%s, %r"),
                    true) == "the random draws, or their order at %inference.q");
  CHECK(step_answer(whole, half(head + tangent, sine + write + draw, "%s, %r"), true) ==
        "the number of inputs: 3 instead of 2");
}

}  // namespace
}  // namespace fxopt
