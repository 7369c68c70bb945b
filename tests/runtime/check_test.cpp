#include "runtime/plan/check.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>

#include "tests/catch.h"
#include "tests/count.h"
#include "tests/runtime/plan_sample.h"

namespace fxopt {
namespace {

using Edit = std::function<void(PlanSample&)>;

// The kinds of all faults by name, each once: "busy lifetime".
std::string kinds(const std::vector<PlanFault>& faults) {
  std::set<std::string> names;
  for (const PlanFault& fault : faults) names.emplace(plan_fault_name(fault.kind));
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

std::string all_messages(const std::vector<PlanFault>& faults) {
  std::string text;
  for (const PlanFault& fault : faults) {
    text += std::string(plan_fault_name(fault.kind)) + ": " + fault.message + "\n";
  }
  return text;
}

// Checks that the edited small sample has faults of exactly these kinds, in its plan or in its
// placement.
void expect(const std::string& what, const std::string& expected, const Edit& edit, bool is_placement) {
  INFO(what);
  PlanSample sample = small_sample();
  edit(sample);
  const std::vector<PlanFault> faults =
      is_placement ? check_placement(sample.view(), sample.place()) : check_plan(sample.view());
  INFO(all_messages(faults));
  CHECK(kinds(faults) == expected);
}
void expect_plan(const std::string& what, const std::string& expected, const Edit& edit) {
  expect(what, expected, edit, false);
}
void expect_placement(const std::string& what, const std::string& expected, const Edit& edit) {
  expect(what, expected, edit, true);
}

// A list that is nested `depth` deep.
FxWord nested_list(PlanSample& s, unsigned depth) {
  FxWord word = s.add_list({});
  for (unsigned i = 1; i < depth; ++i) word = s.add_list({word});
  return word;
}

// Adds a chain of called graphs below that of the sample.
void nest_graphs(PlanSample& s, unsigned depth) {
  PlanSample* at = &s;
  for (unsigned i = 1; i < depth; ++i) {
    if (at->graphs.empty()) at->graphs.push_back(std::make_unique<PlanSample>());
    at = at->graphs.front().get();
  }
}

void set_code(PlanSample& s, uint32_t scalar, const std::vector<FxCode>& code) {
  s.scalars[scalar].code = static_cast<uint32_t>(s.code.size());
  s.scalars[scalar].num_code = static_cast<uint32_t>(code.size());
  s.code.insert(s.code.end(), code.begin(), code.end());
}
FxCode push(FxWord word) { return {word, FX_CODE_PUSH, 0}; }
FxCode code_of(FxCodeOp op) { return {0, static_cast<uint32_t>(op), 0}; }

TEST_CASE("each kind of plan fault has a name of its own") {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kNumPlanFaultKinds; ++i) names.insert(plan_fault_name(static_cast<PlanFaultKind>(i)));
  CHECK(names.size() == kNumPlanFaultKinds);
  CHECK(names.count("") == 0);
  CHECK(plan_fault_name(PlanFaultKind::kLowerBound) == "lower-bound");
  CHECK(plan_fault_name(PlanFaultKind::kFaultyPlan) == "faulty-plan");
  CHECK(plan_fault_name(PlanFaultKind::kBusy) == "busy");
}

TEST_CASE("plans without a fault") {
  expect_plan("small", "", [](PlanSample&) {});
  expect_placement("small", "", [](PlanSample&) {});
  for (const uint32_t steps : {10u, 20u, 1000u}) {
    PlanSample sample = long_sample(steps);
    INFO(all_messages(check_plan(sample.view())));
    CHECK(check_plan(sample.view()).empty());
    CHECK(check_placement(sample.view(), sample.place()).empty());
  }
  PlanSample empty;
  empty.placement.stream_count = 0;
  CHECK(check_plan(empty.view()).empty());
  CHECK(check_placement(empty.view(), empty.place()).empty());
}

TEST_CASE("a fault names what it is about") {
  PlanSample sample = small_sample();
  sample.storages[Small::kB].last = 2;
  sample.graphs[0]->steps[0].op = 7;
  const std::vector<PlanFault> faults = check_plan(sample.view());
  REQUIRE(faults.size() >= 2);
  CHECK(faults[0].step == 3);
  CHECK(faults[0].storage == Small::kB);
  CHECK(faults[0].tensor == FX_NONE);
  CHECK(faults[0].graphs.empty());
  CHECK(faults[0].message == "step 3: reads storage 2, which is alive in steps 1 to 2");
  CHECK(faults.back().graphs == std::vector<uint32_t>{0});
  CHECK(faults.back().step == 0);
  CHECK(faults.back().message == "step 0: op is 7, but there are 1 ops");
}

TEST_CASE("plan structure") {
  expect_plan("version", "bad-version", [](PlanSample& s) { s.plan.version = 2; });
  expect_plan("size", "bad-version", [](PlanSample& s) { s.plan.size -= 8; });
  expect_plan("name", "bad-index", [](PlanSample& s) { s.plan.name = static_cast<uint32_t>(s.strings.size()); });
  expect_plan("no name", "", [](PlanSample& s) { s.plan.name = FX_NONE; });
  expect_plan("a string at null", "bad-array", [](PlanSample& s) { s.strings[0].data = nullptr; });
  expect_plan("an empty string at null", "", [](PlanSample& s) { s.strings[0] = {nullptr, 0}; });
  expect_plan("op", "bad-index", [](PlanSample& s) { s.steps[0].op = 1; });
  expect_plan("op's name", "bad-index", [](PlanSample& s) { s.ops[0].name = FX_NONE; });
  expect_plan("node", "bad-index", [](PlanSample& s) { s.steps[0].node = 0; });
  expect_plan("node that is there", "", [](PlanSample& s) {
    s.nodes.push_back({1, 0, FX_NONE, FX_NONE, 0});
    s.steps[0].node = s.storages[0].node = s.tensors[0].node = s.inputs[0].node = 0;
  });
  expect_plan("node's file", "bad-index", [](PlanSample& s) { s.nodes.push_back({1, 0, FX_NONE, 99, 0}); });
  expect_plan("draw", "bad-index", [](PlanSample& s) { s.steps[0].draw = 0; });
  expect_plan("draw's slot", "bad-index", [](PlanSample& s) { s.draws.push_back({1, 0, 99, 0, 0}); });
  expect_plan("group", "bad-index", [](PlanSample& s) { s.steps[0].group = 1; });
  expect_plan("collective without group", "bad-index", [](PlanSample& s) { s.steps[1].group = FX_NONE; });
  expect_plan("group's ranks", "bad-index", [](PlanSample& s) { s.groups[0].num_ranks = 99; });
  expect_plan("group's name", "bad-value", [](PlanSample& s) { s.groups[0].name = FX_NONE; });
  expect_plan("group by choice", "", [](PlanSample& s) {
    s.groups[0].name = FX_NONE;
    s.groups[0].choice = scalar_word(Small::kTwice);
  });
  expect_plan("group's choice", "bad-value", [](PlanSample& s) { s.groups[0].choice = tensor_word(0); });
  expect_plan("other", "bad-index", [](PlanSample& s) { s.steps[3].other = 9; });
  expect_plan("kind of step", "bad-value", [](PlanSample& s) { s.steps[0].kind = 8; });
  expect_plan("flags of a step", "bad-value", [](PlanSample& s) { s.steps[0].flags = 32; });
  expect_plan("stream", "bad-index", [](PlanSample& s) { s.steps[0].stream = 99; });
  for (uint32_t FxStep::*num : {&FxStep::num_args, &FxStep::num_keywords, &FxStep::num_results, &FxStep::num_writes,
                                &FxStep::num_frees, &FxStep::num_after}) {
    expect_plan("a span", "bad-index", [num](PlanSample& s) { s.steps[0].*num = 9999; });
    expect_plan("a span that overflows", "bad-index", [num](PlanSample& s) { s.steps[0].*num = FX_NONE; });
  }
  expect_plan("an empty span from nowhere", "", [](PlanSample& s) { s.steps[0].after = 9999; });
  expect_plan("one of `writes`", "bad-index",
              [](PlanSample& s) { s.set_writes(4, {Small::kC}), s.indices.back() = 7; });
  expect_plan("one of `frees`", "bad-index", [](PlanSample& s) { s.set_frees(4, {7}); });
  expect_plan("one of `after`", "bad-index", [](PlanSample& s) { s.set_after(4, {9}); });
  expect_plan("a result that is no value", "bad-value",
              [](PlanSample& s) { s.set_results(0, {FxWord{6} << 8 | FX_WORD_DTYPE}); });
  expect_plan("a keyword's name", "bad-value", [](PlanSample& s) { s.words[s.steps[4].keywords] = int_word(1); });

  expect_plan("alias class", "", [](PlanSample& s) { s.storages[2].alias_class = 1; });
  expect_plan("alias class of a class", "bad-value",
              [](PlanSample& s) { s.storages[3].alias_class = 2, s.storages[2].alias_class = 1; });
  expect_plan("alias class beyond", "bad-value", [](PlanSample& s) { s.storages[2].alias_class = 3; });
  expect_plan("lifetime beyond the steps", "bad-value", [](PlanSample& s) { s.storages[Small::kD].last = 9; });
  expect_plan("lifetime upside down", "bad-value", [](PlanSample& s) { s.storages[2].first = 5; });
  expect_plan("source", "bad-value", [](PlanSample& s) { s.storages[0].source = 5; });
  expect_plan("role", "bad-value", [](PlanSample& s) { s.storages[0].role = 11; });
  expect_plan("flags of a storage", "bad-value", [](PlanSample& s) { s.storages[0].flags = 8; });
  expect_plan("device", "bad-index", [](PlanSample& s) { s.storages[0].device = 99; });
  expect_plan("no bytes", "bad-value", [](PlanSample& s) { s.storages[0].bytes = 0; });
  expect_plan("an input that follows", "", [](PlanSample& s) {
    s.storages[0].bytes = 0;
    s.storages[0].flags = FX_STORAGE_FOLLOWS;
  });
  expect_plan("follows, with bytes", "bad-value", [](PlanSample& s) { s.storages[0].flags = FX_STORAGE_FOLLOWS; });
  expect_plan("bytes that are no integer", "bad-value",
              [](PlanSample& s) { s.scalars[Small::kFoundBytes].type = FX_SCALAR_FLOAT; });

  expect_plan("tensor's storage", "bad-index", [](PlanSample& s) { s.tensors[0].storage = 7; });
  expect_plan("tensor's dims", "bad-index", [](PlanSample& s) { s.tensors[0].rank = 255; });
  expect_plan("tensor's dtype", "bad-value", [](PlanSample& s) { s.tensors[0].dtype = 28; });
  expect_plan("tensor's flags", "bad-value", [](PlanSample& s) { s.tensors[0].flags = 16; });
  expect_plan("a size that is a tensor", "bad-value",
              [](PlanSample& s) { s.words[s.tensors[0].dims] = tensor_word(0); });
  expect_plan("no stride", "bad-value", [](PlanSample& s) { s.words[s.tensors[0].dims + 2] = 0; });
  expect_plan("no stride without a storage", "", [](PlanSample& s) {
    s.words[s.tensors[0].dims + 2] = 0;
    s.tensors[0].storage = FX_NONE;
  });

  expect_plan("input's role", "bad-value", [](PlanSample& s) { s.inputs[0].role = 14; });
  expect_plan("input's value", "bad-value", [](PlanSample& s) { s.inputs[0].value = FxWord{6} << 8 | FX_WORD_DTYPE; });
  expect_plan("input that arrives too late", "bad-value", [](PlanSample& s) { s.inputs[0].first = 10; });
  expect_plan("output's role", "bad-value", [](PlanSample& s) { s.outputs[0].role = 10; });
  expect_plan("output's is_input", "bad-index", [](PlanSample& s) { s.outputs[0].is_input = 1; });
}

TEST_CASE("plan words") {
  const auto with = [](FxWord word) { return [word](PlanSample& s) { s.set_args(0, {tensor_word(0), word}); }; };
  const auto numbers = [](FxWord word) {
    return [word](PlanSample& s) {
      s.numbers = {1, 2};
      s.set_args(0, {tensor_word(0), word});
    };
  };
  expect_plan("int", "", with(int_word(-1)));
  expect_plan("number", "", numbers(word_of(FX_WORD_NUMBER, 1)));
  expect_plan("number beyond", "bad-index", numbers(word_of(FX_WORD_NUMBER, 2)));
  expect_plan("double beyond", "bad-index", numbers(word_of(FX_WORD_DOUBLE, 2)));
  expect_plan("complex", "", numbers(word_of(FX_WORD_COMPLEX, 0)));
  expect_plan("complex beyond", "bad-index", numbers(word_of(FX_WORD_COMPLEX, 1)));
  expect_plan("complex without numbers", "bad-index", with(word_of(FX_WORD_COMPLEX, 0)));
  expect_plan("bool", "", with(word_of(FX_WORD_BOOL, 1)));
  expect_plan("bool of 2", "bad-value", with(word_of(FX_WORD_BOOL, 2)));
  expect_plan("scalar beyond", "bad-index", with(scalar_word(4)));
  expect_plan("scalar beyond 32 bits", "bad-index", with(word_of(FX_WORD_SCALAR, uint64_t{1} << 32)));
  expect_plan("tensor beyond", "bad-index", with(tensor_word(7)));
  expect_plan("string beyond", "bad-index", with(word_of(FX_WORD_STRING, 99)));
  expect_plan("device beyond", "bad-index", with(word_of(FX_WORD_DEVICE, 99)));
  expect_plan("dtype", "", with(word_of(FX_WORD_DTYPE, 27)));
  expect_plan("dtype beyond", "bad-value", with(word_of(FX_WORD_DTYPE, 28)));
  expect_plan("layout", "", with(word_of(FX_WORD_LAYOUT, 7)));
  expect_plan("layout beyond", "bad-value", with(word_of(FX_WORD_LAYOUT, 8)));
  expect_plan("format", "", with(word_of(FX_WORD_FORMAT, 3)));
  expect_plan("format beyond", "bad-value", with(word_of(FX_WORD_FORMAT, 4)));
  expect_plan("graph beyond", "bad-index", with(word_of(FX_WORD_GRAPH, 1)));
  expect_plan("group", "", with(word_of(FX_WORD_GROUP, 0)));
  expect_plan("group beyond", "bad-index", with(word_of(FX_WORD_GROUP, 1)));
  expect_plan("unknown kind", "bad-value", with(16));
}

TEST_CASE("plan lists") {
  expect_plan("64 deep", "", [](PlanSample& s) { s.set_args(0, {tensor_word(0), nested_list(s, 64)}); });
  expect_plan("65 deep", "bad-list", [](PlanSample& s) { s.set_args(0, {tensor_word(0), nested_list(s, 65)}); });
  expect_plan("65 deep in two pieces", "bad-list", [](PlanSample& s) {
    const FxWord inner = nested_list(s, 40);
    FxWord outer = inner;
    for (int i = 0; i < 25; ++i) outer = s.add_list({outer});
    s.set_args(0, {tensor_word(0), inner, outer});
  });
  expect_plan("contains itself", "bad-list", [](PlanSample& s) {
    const FxWord list = s.add_list({int_word(1)});
    s.words.back() = list;
    s.set_args(0, {tensor_word(0), list});
  });
  expect_plan("ends with the words", "", [](PlanSample& s) {
    s.set_args(0, {tensor_word(0), word_of(FX_WORD_LIST, s.words.size() + 2)});
    s.add_list({int_word(1)});
  });
  expect_plan("ends beyond the words", "bad-index", [](PlanSample& s) {
    s.set_args(0, {tensor_word(0), word_of(FX_WORD_LIST, s.words.size() + 2)});
    s.words[s.add_words({int_word(2), int_word(1)})] = int_word(2);
  });
  expect_plan("negative count", "bad-index", [](PlanSample& s) {
    const FxWord list = s.add_list({});
    s.words.back() = int_word(-1);
    s.set_args(0, {tensor_word(0), list});
  });
  expect_plan("begins beyond the words", "bad-index", [](PlanSample& s) {
    s.set_args(0, {tensor_word(0), word_of(FX_WORD_LIST, 99999)});
  });
  // 2^40 tensors in 40 lists.
  expect_plan("shared lists", "too-large", [](PlanSample& s) {
    FxWord list = s.add_list({tensor_word(0), tensor_word(0)});
    for (int i = 0; i < 40; ++i) list = s.add_list({list, list});
    s.set_args(0, {list});
  });
  expect_plan("fewer shared lists", "", [](PlanSample& s) {
    FxWord list = s.add_list({tensor_word(0), tensor_word(0)});
    for (int i = 0; i < 10; ++i) list = s.add_list({list, list});
    s.set_args(0, {list});
  });
}

TEST_CASE("plan graphs") {
  expect_plan("64 deep", "", [](PlanSample& s) { nest_graphs(s, 64); });
  expect_plan("65 deep", "bad-graph", [](PlanSample& s) { nest_graphs(s, 65); });
  expect_plan("contains itself", "bad-graph", [](PlanSample& s) { s.graph_views = {&s.plan}; });
  expect_plan("null", "bad-array", [](PlanSample& s) { s.graph_views = {nullptr}; });
  expect_plan("shared, so often that 2^40 paths exist", "", [](PlanSample& s) {
    const PlanSample* below = s.graphs.front().get();
    s.graphs.front()->view();
    for (int i = 0; i < 40; ++i) {
      s.graphs.push_back(std::make_unique<PlanSample>());
      s.graphs.back()->graph_views = {&below->plan, &below->plan};
      s.graphs.back()->view();
      below = s.graphs.back().get();
    }
  });
  expect_plan("an input in a called graph", "source",
              [](PlanSample& s) { s.graphs[0]->storages[0].source = FX_SOURCE_INPUT; });
  expect_plan("a caller's storage at the top", "source", [](PlanSample& s) { s.storages[0].source = FX_SOURCE_OUTER; });
  expect_plan("a caller's scalar at the top", "scalar-source",
              [](PlanSample& s) { s.scalars[Small::kSize].source = FX_SCALAR_OUTER; });
  expect_plan("rules hold in called graphs", "not-freed returned",
              [](PlanSample& s) { s.graphs[0]->storages[1].flags = 0; });
}

TEST_CASE("plan scalar code") {
  const auto with = [](const std::vector<FxCode>& code) {
    return [code](PlanSample& s) { set_code(s, Small::kTwice, code); };
  };
  const FxCode one = push(int_word(1));
  expect_plan("one value", "", with({one}));
  expect_plan("none", "bad-code", with({}));
  expect_plan("two values", "bad-code", with({one, one}));
  expect_plan("underflow", "bad-code", with({code_of(FX_CODE_NEG), one}));
  expect_plan("underflow of two operands", "bad-code", with({one, code_of(FX_CODE_ADD)}));
  expect_plan("three operands", "", with({one, one, one, code_of(FX_CODE_WHERE)}));
  expect_plan("three operands, two given", "bad-code", with({one, one, code_of(FX_CODE_INDEXING)}));
  expect_plan("last operator", "", with({one, code_of(FX_CODE_POW2FLOOR)}));
  expect_plan("unknown operator", "bad-value", with({one, code_of(FX_NUM_CODE_OPS)}));
  expect_plan("pushes a string", "bad-value", with({push(word_of(FX_WORD_STRING, 0))}));
  expect_plan("pushes a number beyond", "bad-index", with({push(word_of(FX_WORD_NUMBER, 0))}));
  expect_plan("pushes itself", "scalar-order", with({push(scalar_word(Small::kTwice))}));
  expect_plan("span", "bad-index", [](PlanSample& s) { s.scalars[Small::kTwice].num_code = 999; });
}

TEST_CASE("plan scalars") {
  expect_plan("source", "bad-value", [](PlanSample& s) { s.scalars[0].source = 6; });
  expect_plan("type", "bad-value", [](PlanSample& s) { s.scalars[Small::kTwice].type = 3; });
  expect_plan("name", "bad-index", [](PlanSample& s) { s.scalars[0].name = 99; });
  expect_plan("range", "bad-value", [](PlanSample& s) { s.scalars[0].name = 0, s.scalars[0].min = 1; });
  expect_plan("last dim", "", [](PlanSample& s) { s.scalars[0].dim = 4; });
  expect_plan("dim beyond", "bad-index", [](PlanSample& s) { s.scalars[0].dim = 5; });
  expect_plan("dim of no input", "scalar-source", [](PlanSample& s) { s.scalars[0].tensor = 1; });
  expect_plan("dim that is late", "scalar-ready", [](PlanSample& s) { s.scalars[0].ready = s.scalars[1].ready = 1; });
  expect_plan("no input", "scalar-source", [](PlanSample& s) { s.scalars[0].source = FX_SCALAR_INPUT; });
  expect_plan("an input", "", [](PlanSample& s) {
    s.scalars[0].source = FX_SCALAR_INPUT;
    s.add_input(scalar_word(0));
  });
  expect_plan("an input that arrives later", "", [](PlanSample& s) {
    s.scalars[0].source = FX_SCALAR_INPUT;
    s.add_input(scalar_word(0));
    s.inputs.back().first = s.scalars[0].ready = s.scalars[1].ready = 4;
  });
  expect_plan("code earlier than its operand", "scalar-ready",
              [](PlanSample& s) { s.scalars[Small::kFoundBytes].ready = 5; });
  expect_plan("ready beyond the steps", "bad-value", [](PlanSample& s) { s.scalars[Small::kFound].ready = 10; });
  expect_plan("made by another step", "scalar-unmade",
              [](PlanSample& s) { s.scalars[Small::kFound].ready = s.scalars[Small::kFoundBytes].ready = 5; });
  expect_plan("made by no step", "scalar-ready", [](PlanSample& s) { s.scalars[Small::kFound].ready = 0; });
  expect_plan("a result", "", [](PlanSample& s) {
    s.set_results(4, {tensor_word(Small::kD), scalar_word(s.add_scalar(FX_SCALAR_STEP, 5))});
  });
  expect_plan("a result of another step", "scalar-ready scalar-unmade", [](PlanSample& s) {
    s.set_results(4, {tensor_word(Small::kD), scalar_word(s.add_scalar(FX_SCALAR_STEP, 6))});
  });
  expect_plan("argument just in time", "", [](PlanSample& s) {
    s.set_args(6, {tensor_word(Small::kLate), scalar_word(Small::kFound)});
  });
  expect_plan("argument too early", "scalar-late", [](PlanSample& s) {
    s.set_args(5, {tensor_word(Small::kD), s.add_list({scalar_word(Small::kFound)})});
  });
  expect_plan("keyword too early", "scalar-late",
              [](PlanSample& s) { s.words[s.steps[4].keywords + 1] = scalar_word(Small::kFound); });
  expect_plan("choice of the group too early", "scalar-late",
              [](PlanSample& s) { s.groups[0].choice = scalar_word(Small::kFound); });
  expect_plan("size of an argument too early", "scalar-late",
              [](PlanSample& s) { s.words[s.tensors[Small::kD].dims] = scalar_word(Small::kFound); });
  expect_plan("offset of an argument in time", "",
              [](PlanSample& s) { s.tensors[Small::kD].offset = scalar_word(Small::kTwice); });
  expect_plan("size of a result too early", "scalar-late", [](PlanSample& s) {
    s.words[s.tensors[Small::kA].dims + 3] = scalar_word(Small::kFound);
    s.set_args(1, {tensor_word(0)});
  });
}

TEST_CASE("each read follows its write") {
  const auto reads = [](uint32_t step, uint32_t tensor) {
    return [=](PlanSample& s) {
      std::vector<FxWord> args(s.words.begin() + s.steps[step].args,
                               s.words.begin() + s.steps[step].args + s.steps[step].num_args);
      args.push_back(s.add_list({s.add_list({tensor_word(tensor)})}));
      s.set_args(step, args);
    };
  };
  expect_plan("made by the step before", "", reads(5, Small::kD));
  expect_plan("made by the step itself", "unmade", reads(4, Small::kD));
  expect_plan("made by a later step", "unmade", reads(3, Small::kD));
  expect_plan("last use", "", reads(4, Small::kB));
  expect_plan("after the last", "lifetime", reads(5, Small::kB));
  expect_plan("taken later than made", "lifetime", [](PlanSample& s) { s.storages[Small::kD].first = 5; });
  expect_plan("taken earlier than made", "", [](PlanSample& s) { s.storages[Small::kD].first = 3; });
  expect_plan("nothing taken", "lifetime", [](PlanSample& s) {
    s.storages[Small::kA].first = FX_NONE;
    s.set_frees(3, {});
  });
  expect_plan("nothing taken for no bytes", "", [](PlanSample& s) {
    s.storages[Small::kA].first = FX_NONE;
    s.storages[Small::kA].bytes = int_word(0);
    s.words[s.tensors[Small::kA].dims] = int_word(0);
    s.set_frees(3, {});
  });
  expect_plan("an unused lifetime", "lifetime", [](PlanSample& s) {
    s.set_frees(3, {Small::kA, s.add_storage(0, 4, 1, 3)});
  });
  expect_plan("an input that arrives in time", "", [](PlanSample& s) { s.inputs[0].first = 0; });
  expect_plan("an input that arrives later", "unmade", [](PlanSample& s) { s.inputs[0].first = 1; });
  expect_plan("no input on the storage", "unmade", [](PlanSample& s) {
    s.tensors[Small::kA].storage = s.add_storage(FX_SOURCE_INPUT, 64, FX_NONE, FX_NONE);
    s.storages[Small::kA].first = FX_NONE;
    s.set_frees(3, {});
  });
  expect_plan("an input on a planned storage", "source", [](PlanSample& s) { s.add_input(tensor_word(Small::kA)); });
  expect_plan("a constant", "", [](PlanSample& s) {
    s.add_tensor(s.add_storage(FX_SOURCE_CONSTANT, 4, FX_NONE, FX_NONE), {int_word(1)});
    s.set_args(0, {tensor_word(0), tensor_word(7)});
  });
  expect_plan("an output that no step makes", "unmade", [](PlanSample& s) {
    s.add_tensor(s.add_storage(FX_SOURCE_PLANNED, 4, FX_NONE, FX_NONE), {int_word(1)});
    s.storages.back().flags = FX_STORAGE_RETURNED;
    s.add_output(tensor_word(7));
  });
}

TEST_CASE("storages are freed once, or returned") {
  expect_plan("not freed", "not-freed", [](PlanSample& s) { s.set_frees(3, {}); });
  expect_plan("freed twice in one step", "free", [](PlanSample& s) { s.set_frees(3, {Small::kA, Small::kA}); });
  expect_plan("freed twice", "free", [](PlanSample& s) { s.set_frees(5, {Small::kA}); });
  expect_plan("freed late", "free", [](PlanSample& s) {
    s.set_frees(3, {});
    s.set_frees(4, {Small::kA, Small::kB, Small::kC});
  });
  expect_plan("an input", "free", [](PlanSample& s) { s.set_frees(3, {Small::kA, Small::kX}); });
  expect_plan("returned", "free", [](PlanSample& s) { s.set_frees(8, {Small::kD}); });
  expect_plan("returned and ends early", "lifetime", [](PlanSample& s) { s.storages[Small::kD].last = 7; });
  expect_plan("an output without the flag", "returned", [](PlanSample& s) {
    s.storages[Small::kD].flags = 0;
    s.set_frees(8, {Small::kD});
  });
  expect_plan("an output in a list without the flag", "returned", [](PlanSample& s) {
    s.storages[Small::kE].flags = FX_STORAGE_WRITTEN;
    s.set_frees(8, {Small::kE});
  });
  expect_plan("the flag without an output", "returned", [](PlanSample& s) { s.outputs[0].value = 0; });
  expect_plan("the flag, an output on its class", "", [](PlanSample& s) {
    s.outputs[0].value = 0;
    s.storages[Small::kE].alias_class = Small::kD;
  });
}

TEST_CASE("writes and draws agree with flags") {
  expect_plan("a step's flag", "flags", [](PlanSample& s) { s.steps[0].flags = FX_STEP_WRITES; });
  expect_plan("no step's flag", "flags", [](PlanSample& s) { s.steps[4].flags = 0; });
  expect_plan("a storage's flag", "flags", [](PlanSample& s) { s.storages[Small::kA].flags = FX_STORAGE_WRITTEN; });
  expect_plan("no storage's flag", "flags", [](PlanSample& s) { s.storages[Small::kC].flags = 0; });
  expect_plan("an input's flag", "", [](PlanSample& s) { s.set_writes(0, {Small::kX}); });
  expect_plan("writes what it makes", "unmade", [](PlanSample& s) { s.set_writes(0, {Small::kA}); });
  expect_plan("writes what has ended", "lifetime", [](PlanSample& s) { s.set_writes(5, {Small::kB}); });
  expect_plan("a draw", "", [](PlanSample& s) {
    s.draws.push_back({1, 0, FX_NONE, 0, 0});
    s.steps[0].draw = 0;
    s.steps[0].flags = FX_STEP_DRAWS;
  });
  expect_plan("a transfer's flag", "flags", [](PlanSample& s) { s.steps[0].flags = FX_STEP_TRANSFERS; });
  expect_plan("a draw's flag", "flags", [](PlanSample& s) { s.steps[0].flags = FX_STEP_DRAWS; });
}

TEST_CASE("bytes of storages") {
  const auto late = [](const std::function<void(FxStorage&)>& edit) {
    return [edit](PlanSample& s) { edit(s.storages[Small::kLate]); };
  };
  expect_plan("planned, but found out", "bytes-late", late([](FxStorage& x) { x.source = FX_SOURCE_PLANNED; }));
  expect_plan("planned by an input", "",
              [](PlanSample& s) { s.storages[Small::kA].bytes = scalar_word(Small::kTwice); });
  expect_plan("late, but known", "bytes-late", late([](FxStorage& x) { x.bytes = int_word(64); }));
  expect_plan("late, by an input", "bytes-late", late([](FxStorage& x) { x.bytes = scalar_word(Small::kTwice); }));
  expect_plan("late, follows its call", "", late([](FxStorage& x) {
                x.bytes = 0;
                x.flags = FX_STORAGE_FOLLOWS;
              }));
  expect_plan("planned, follows its call", "bytes-late", late([](FxStorage& x) {
                x.bytes = 0;
                x.flags = FX_STORAGE_FOLLOWS;
                x.source = FX_SOURCE_PLANNED;
              }));
  expect_plan("later than its step", "bytes-late", [](PlanSample& s) {
    s.storages[Small::kC].source = FX_SOURCE_LATE;
    s.storages[Small::kC].bytes = scalar_word(Small::kFoundBytes);
  });
  expect_plan("negative", "negative outside-storage", [](PlanSample& s) { s.storages[0].bytes = int_word(-1); });
}

TEST_CASE("tensors stay within their storages") {
  const auto with = [](FxDType dtype, std::vector<FxWord> dims, FxWord offset, int64_t bytes) {
    return [=](PlanSample& s) {
      s.numbers = {std::numeric_limits<int64_t>::max(), int64_t{1} << 61};
      FxTensor tensor{};
      tensor.storage = s.add_storage(FX_SOURCE_CONSTANT, bytes, FX_NONE, FX_NONE);
      tensor.dims = s.add_words(dims);
      tensor.rank = static_cast<uint8_t>(dims.size() / 2);
      tensor.dtype = dtype;
      tensor.offset = offset;
      tensor.node = FX_NONE;
      s.tensors.push_back(tensor);
    };
  };
  const auto n = int_word;
  const FxWord most = word_of(FX_WORD_NUMBER, 0);
  const FxWord large = word_of(FX_WORD_NUMBER, 1);
  expect_plan("fits", "", with(7, {n(2), n(3), n(10), n(1)}, n(4), 68));
  expect_plan("one byte less", "outside-storage", with(7, {n(2), n(3), n(10), n(1)}, n(4), 67));
  expect_plan("no sizes", "", with(7, {}, n(0), 4));
  expect_plan("no sizes, no room", "outside-storage", with(7, {}, n(0), 3));
  expect_plan("empty", "", with(7, {n(0), n(9), n(1), n(1)}, n(1000), 0));
  expect_plan("empty behind a large size", "", with(7, {most, n(0), most, n(1)}, n(0), 0));
  expect_plan("stride 0", "", with(7, {most, n(0)}, n(0), 4));
  expect_plan("a product beyond 64 bits", "outside-storage", with(7, {most, n(3)}, n(0), 4));
  expect_plan("a product that wraps to 0", "outside-storage", with(2, {large, n(8)}, n(8), 64));
  expect_plan("a sum beyond 64 bits", "outside-storage", with(2, {n(2), n(1)}, most, 4));
  expect_plan("bytes beyond 64 bits", "outside-storage", with(7, {n(1), n(1)}, large, 4));
  expect_plan("negative size", "negative", with(7, {n(-1), n(1)}, n(0), 4));
  expect_plan("negative stride", "negative", with(7, {n(1), n(-1)}, n(0), 4));
  expect_plan("negative offset", "negative", with(7, {n(1), n(1)}, n(-1), 4));
  expect_plan("unknown size", "", with(7, {scalar_word(0), n(1)}, n(1000), 4));
  expect_plan("unknown dtype", "", with(0, {n(9), n(1)}, n(0), 1));
  expect_plan("dtype of half a byte", "", with(22, {n(9), n(1)}, n(0), 1));
  // By dtype number in schemas/fxgraph.proto.
  const int64_t sizes[] = {0, 1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 2, 2, 4, 8, 1, 1, 1, 1, 1, 0, 1, 1, 4, 1, 2};
  for (uint8_t dtype = 1; dtype < 28; ++dtype) {
    if (sizes[dtype] == 0) continue;
    expect_plan("fits", "", with(dtype, {n(3), n(1)}, n(0), 3 * sizes[dtype]));
    expect_plan("does not fit", "outside-storage", with(dtype, {n(3), n(1)}, n(0), 3 * sizes[dtype] - 1));
  }
}

TEST_CASE("buffers of exchanges are busy until the wait") {
  expect_plan("waits for a later step", "busy ends-in-exchange wait", [](PlanSample& s) { s.steps[3].other = 7; });
  expect_plan("waits for a kernel", "busy ends-in-exchange wait", [](PlanSample& s) { s.steps[3].other = 0; });
  expect_plan("waits for a message", "",
              [](PlanSample& s) { s.steps[1].kind = FX_STEP_MESSAGE, s.steps[7].sequence = 0; });
  expect_plan("reads what it reads", "", [](PlanSample& s) {
    s.set_args(2, {tensor_word(0), tensor_word(Small::kA)});
  });
  expect_plan("writes what it reads", "busy", [](PlanSample& s) { s.set_writes(2, {Small::kA}); });
  expect_plan("writes it in the wait's step or later", "", [](PlanSample& s) {
    s.storages[Small::kA].last = 4;
    s.set_frees(3, {});
    s.set_frees(4, {Small::kA, Small::kB, Small::kC});
    s.set_writes(4, {Small::kA, Small::kC});
  });
  expect_plan("reads what it makes", "busy", [](PlanSample& s) {
    s.set_args(2, {tensor_word(0), tensor_word(Small::kB)});
  });
  expect_plan("writes what it makes", "busy", [](PlanSample& s) { s.set_writes(2, {Small::kB}); });
  expect_plan("a view is handed through", "", [](PlanSample& s) {
    s.set_results(2, {tensor_word(Small::kC), tensor_word(Small::kB)});
  });
  expect_plan("its input ends with the wait", "", [](PlanSample&) {});
  expect_plan("its input ends before the wait", "ends-in-exchange", [](PlanSample& s) {
    s.storages[Small::kA].last = 2;
    s.set_frees(2, {Small::kA});
    s.set_frees(3, {});
  });
  expect_plan("nobody waits, read later", "busy ends-in-exchange", [](PlanSample& s) { s.steps[3].other = FX_NONE; });
  expect_plan("nobody waits, returned", "busy", [](PlanSample& s) { s.steps[8].other = FX_NONE; });
  expect_plan("nobody waits, and nobody uses it", "", [](PlanSample& s) {
    s.steps[8].other = FX_NONE;
    s.set_args(8, {});
  });
  expect_plan("another exchange reads what it reads", "", [](PlanSample& s) {
    s.steps[2].kind = FX_STEP_MESSAGE;
    s.set_args(2, {tensor_word(Small::kA)});
    s.storages[Small::kA].last = s.storages[Small::kC].last = 8;
    s.set_frees(3, {});
    s.set_frees(4, {Small::kB});
    s.set_frees(8, {Small::kA, Small::kC});
    s.set_args(4, {tensor_word(Small::kB)});
    s.set_writes(4, {});
    s.storages[Small::kC].flags = 0;
  });
  // Two results with two waits. Each may be used after its own wait.
  const auto two_waits = [](uint32_t read) {
    return [read](PlanSample& s) {
      const uint32_t second = s.add_storage(FX_SOURCE_PLANNED, 64, 1, 6);
      const uint32_t tensor = s.add_tensor(second, {int_word(4)});
      s.set_results(1, {tensor_word(Small::kB), tensor_word(tensor)});
      s.storages[Small::kA].last = s.storages[Small::kLate].last = 6;
      s.steps[5].kind = FX_STEP_WAIT;
      s.steps[5].other = 1;
      s.set_args(5, {tensor_word(tensor)});
      s.set_frees(3, {});
      s.set_frees(6, {Small::kLate, Small::kA, second});
      if (read != FX_NONE) s.set_args(read, {tensor_word(Small::kB), tensor_word(tensor)});
    };
  };
  expect_plan("first wait", "", two_waits(FX_NONE));
  expect_plan("between the waits", "busy", two_waits(4));
  expect_plan("sequence", "sequence", [](PlanSample& s) { s.steps[7].sequence = 2; });
  expect_plan("sequence from 0", "sequence", [](PlanSample& s) { s.steps[1].sequence = 1, s.steps[7].sequence = 2; });
  expect_plan("sequence of another group", "", [](PlanSample& s) {
    s.groups.push_back(s.groups[0]);
    s.steps[7].group = 1;
    s.steps[7].sequence = 0;
  });
}

TEST_CASE("outputs that are inputs") {
  expect_plan("is_input without the tensor", "shared-tensor", [](PlanSample& s) { s.outputs[0].is_input = 0; });
  expect_plan("the tensor without is_input", "shared-tensor", [](PlanSample& s) { s.outputs[1].is_input = FX_NONE; });
  expect_plan("a view of an input", "", [](PlanSample& s) {
    s.outputs[1] = {FX_NONE, 0, tensor_word(s.add_tensor(Small::kX, {int_word(2)})), FX_NONE, 0};
  });
}

TEST_CASE("steps follow earlier steps only") {
  expect_plan("earlier", "", [](PlanSample& s) { s.set_after(4, {0, 3}); });
  expect_plan("itself", "after", [](PlanSample& s) { s.set_after(4, {4}); });
  expect_plan("later", "after", [](PlanSample& s) { s.set_after(4, {5}); });
}

TEST_CASE("at most so many faults are listed") {
  PlanSample sample = long_sample(1000);
  for (FxStep& step : sample.steps) step.op = 9;
  CHECK(check_plan(sample.view()).size() == kMaxPlanFaults);
}

TEST_CASE("placement arrays and kinds") {
  expect_placement("a faulty plan", "faulty-plan", [](PlanSample& s) { s.set_after(4, {4}); });
  expect_placement("version", "bad-version", [](PlanSample& s) { s.placement.version = 0; });
  expect_placement("size", "bad-version", [](PlanSample& s) { s.placement.size = 0; });
  expect_placement("blocks", "placement-size", [](PlanSample& s) { s.blocks.pop_back(); });
  expect_placement("streams", "placement-size", [](PlanSample& s) { s.streams.pop_back(); });
  expect_placement("workspaces", "placement-size", [](PlanSample& s) { s.workspaces.clear(); });
  expect_placement("kernels", "placement-size", [](PlanSample& s) { s.kernels.push_back(0); });
  expect_placement("device", "bad-index", [](PlanSample& s) { s.placement.device = 99; });
  expect_placement("stream", "stream", [](PlanSample& s) { s.streams[2] = 2; });
  expect_placement("64 streams", "", [](PlanSample& s) { s.placement.stream_count = 64; });
  expect_placement("65 streams", "stream", [](PlanSample& s) { s.placement.stream_count = 65; });
  expect_placement("no stream", "stream", [](PlanSample& s) { s.placement.stream_count = 0; });
  expect_placement("lower bound", "", [](PlanSample& s) { s.placement.lower_bound = 320; });
  expect_placement("lower bound above", "lower-bound", [](PlanSample& s) { s.placement.lower_bound = 321; });
  expect_placement("event of a later step", "event", [](PlanSample& s) {
    s.events = {{0, 1}, {1, 3}, {7, 6}, {7, 8}};
  });
  expect_placement("event beyond", "event", [](PlanSample& s) { s.events.push_back({9, 9}); });
  expect_placement("event of one stream", "event", [](PlanSample& s) { s.events.insert(s.events.begin(), {0, 2}); });
  expect_placement("events not sorted", "event", [](PlanSample& s) { std::swap(s.events[0], s.events[1]); });
  expect_placement("an event twice", "", [](PlanSample& s) { s.events.insert(s.events.begin(), {0, 1}); });

  const auto kind = [](uint32_t storage, FxBlockKind block) {
    return [=](PlanSample& s) { s.blocks[storage].kind = block; };
  };
  expect_placement("input in the arena", "block", kind(Small::kX, FX_BLOCK_ARENA));
  expect_placement("planned, given", "block", kind(Small::kA, FX_BLOCK_GIVEN));
  expect_placement("planned, late", "block", kind(Small::kA, FX_BLOCK_LATE));
  expect_placement("planned, returned, late", "", kind(Small::kE, FX_BLOCK_LATE));
  expect_placement("planned, none", "block", kind(Small::kA, FX_BLOCK_NONE));
  expect_placement("late in the arena", "block", kind(Small::kLate, FX_BLOCK_ARENA));
  expect_placement("unknown", "block", [](PlanSample& s) { s.blocks[0].kind = 4; });
  expect_placement("workspace, late", "block", [](PlanSample& s) { s.workspaces[0].kind = FX_BLOCK_LATE; });
  expect_placement("another device", "block", [](PlanSample& s) { s.storages[0].device = s.add_string("cpu"); });
  expect_placement("another device, none", "", [](PlanSample& s) {
    s.storages[0].device = s.add_string("cpu");
    s.blocks[0].kind = FX_BLOCK_NONE;
  });
  expect_placement("two strings of one device", "", [](PlanSample& s) {
    for (FxStorage& storage : s.storages) storage.device = s.add_string("cuda:0");
    s.placement.device = s.add_string("cuda:0");
  });

  expect_placement("small", "block-small", [](PlanSample& s) { s.blocks[Small::kA].bytes = 63; });
  expect_placement("negative offset", "block", [](PlanSample& s) { s.blocks[Small::kA].offset = -1; });
  expect_placement("negative bytes", "block block-small", [](PlanSample& s) { s.blocks[Small::kA].bytes = -1; });
  expect_placement("end of the arena", "", [](PlanSample& s) { s.blocks[Small::kD].offset = 256; });
  expect_placement("beyond the arena", "block", [](PlanSample& s) { s.blocks[Small::kD].offset = 257; });
  expect_placement("overflow", "block",
                   [](PlanSample& s) { s.blocks[Small::kD].offset = std::numeric_limits<int64_t>::max(); });
  expect_placement("workspace beyond the arena", "block", [](PlanSample& s) { s.workspaces[5].offset = 300; });
}

TEST_CASE("placements share bytes in turn") {
  expect_placement("alive together", "blocks-overlap", [](PlanSample& s) { s.blocks[Small::kB].offset = 63; });
  expect_placement("side by side", "", [](PlanSample& s) { s.blocks[Small::kB].offset = 64; });
  // The step that uses c last produces d.
  expect_placement("one ends where the other begins", "blocks-overlap",
                   [](PlanSample& s) { s.blocks[Small::kD].offset = 128; });
  expect_placement("one ends before", "", [](PlanSample& s) {
    s.blocks[Small::kD].offset = 0;
    s.blocks[Small::kE].offset = 128;
  });
  expect_placement("workspace on its argument", "workspace-overlap",
                   [](PlanSample& s) { s.workspaces[5].offset = 192; });
  expect_placement("workspace of the step before the first", "", [](PlanSample& s) { s.workspaces[5].offset = 0; });
  expect_placement("workspace on its result", "workspace-overlap", [](PlanSample& s) {
    s.workspaces[5].kind = FX_BLOCK_NONE;
    s.workspaces[6] = {0, 8, FX_BLOCK_ARENA, 0};
  });
  expect_placement("workspace of a collective until its wait", "workspace-overlap", [](PlanSample& s) {
    s.workspaces[1] = {128, 64, FX_BLOCK_ARENA, 0};
  });
  expect_placement("workspace of a kernel", "", [](PlanSample& s) { s.workspaces[0] = {128, 64, FX_BLOCK_ARENA, 0}; });
}

TEST_CASE("placements order streams by events") {
  const auto without = [](size_t event) {
    return [event](PlanSample& s) { s.events.erase(s.events.begin() + static_cast<std::ptrdiff_t>(event)); };
  };
  expect_placement("collective before its input", "unordered", without(0));
  expect_placement("wait before its collective", "blocks-overlap unordered workspace-overlap", without(1));
  expect_placement("collective before what it writes", "unordered", without(2));
  expect_placement("last wait", "unordered", without(3));
  expect_placement("through a third stream", "", [](PlanSample& s) {
    s.placement.stream_count = 3;
    s.streams[2] = 2;
    s.events = {{0, 1}, {1, 2}, {2, 3}, {6, 7}, {7, 8}};
  });
  expect_placement("only through what is not ordered", "", [](PlanSample& s) {
    s.placement.stream_count = 3;
    s.streams[2] = 2;
    s.events = {{0, 1}, {1, 3}, {2, 4}, {6, 7}, {7, 8}};
  });
  expect_placement("an input needs no event", "", [](PlanSample& s) {
    s.streams[2] = 1;
    s.events = {{0, 1}, {1, 3}, {2, 4}, {6, 7}, {7, 8}};
  });
  expect_placement("a write behind a reader of another stream", "", [](PlanSample& s) {
    s.placement.stream_count = 3;
    s.streams[2] = 2;
    s.events = {{0, 1}, {1, 3}, {2, 4}, {6, 7}, {7, 8}};
    s.set_writes(4, {Small::kX, Small::kC});
  });
  expect_placement("a write beside a reader of another stream", "unordered", [](PlanSample& s) {
    s.placement.stream_count = 3;
    s.streams[2] = 2;
    s.set_args(4, {tensor_word(Small::kB), scalar_word(Small::kTwice)});
    s.set_writes(4, {Small::kX});
    s.storages[Small::kC].flags = 0;
  });
  expect_placement("`after` on another stream", "unordered", [](PlanSample& s) {
    s.streams[2] = 1;
    s.events = {{0, 1}, {1, 3}, {2, 4}, {6, 7}, {7, 8}};
    s.set_after(3, {2});
  });
  expect_placement("`after` on its stream", "", [](PlanSample& s) { s.set_after(3, {2}); });

  // Stream 2 alone uses c, in step 2, and c ends there. d takes its bytes in step 4.
  const auto reuse = [](bool ordered) {
    return [ordered](PlanSample& s) {
      s.placement.stream_count = 3;
      s.streams[2] = 2;
      s.storages[Small::kC].last = 2;
      s.storages[Small::kC].flags = 0;
      s.set_args(4, {tensor_word(Small::kB)});
      s.set_writes(4, {});
      s.set_frees(2, {Small::kC});
      s.set_frees(4, {Small::kB});
      s.blocks[Small::kD].offset = 128;
      s.events = {{0, 1}, {1, 3}, {6, 7}, {7, 8}};
      if (ordered) s.events.insert(s.events.begin() + 2, {2, 4});
    };
  };
  expect_placement("bytes change hands behind an event", "", reuse(true));
  expect_placement("bytes change hands without an event", "blocks-overlap", reuse(false));
  expect_placement("a workspace of another stream", "workspace-overlap", [&](PlanSample& s) {
    reuse(false)(s);
    s.blocks[Small::kD].offset = 192;
    s.workspaces[2] = {256, 64, FX_BLOCK_ARENA, 0};
    s.workspaces[3] = {256, 64, FX_BLOCK_ARENA, 0};
  });
  expect_placement("a workspace of another stream, ordered", "", [&](PlanSample& s) {
    reuse(true)(s);
    s.blocks[Small::kD].offset = 192;
    s.workspaces[2] = {256, 64, FX_BLOCK_ARENA, 0};
    s.workspaces[4] = {256, 64, FX_BLOCK_ARENA, 0};
  });
}

// Compares all pairs of blocks, by an order that is closed step by step. The sweep must agree with
// it.
bool has_conflict(PlanSample& s) {
  const size_t n = s.steps.size();
  std::vector<std::vector<bool>> behind(n, std::vector<bool>(n, false));  // [later][earlier]
  for (size_t i = 0; i < n; ++i) {
    behind[i][i] = true;
    const auto follow = [&](size_t k) {
      for (size_t j = 0; j <= k; ++j) {
        if (behind[k][j]) behind[i][j] = true;
      }
    };
    for (size_t k = 0; k < i; ++k) {
      if (s.streams[k] == s.streams[i]) follow(k);
    }
    for (const FxEvent& event : s.events) {
      if (event.awaited_by == i) follow(event.recorded_by);
    }
  }
  std::vector<std::vector<size_t>> users(s.storages.size());
  for (size_t i = 0; i < n; ++i) {
    for (uint32_t k = 0; k < s.steps[i].num_args; ++k) users[s.words[s.steps[i].args + k] >> 8].push_back(i);
    for (uint32_t k = 0; k < s.steps[i].num_results; ++k) users[s.words[s.steps[i].results + k] >> 8].push_back(i);
  }
  for (size_t t = 1; t < users.size(); ++t) {
    for (const size_t user : users[t]) {
      if (!behind[user][s.storages[t].first]) return true;
    }
  }
  for (size_t a = 1; a < users.size(); ++a) {
    for (size_t b = 1; b < users.size(); ++b) {
      const bool share = s.blocks[a].offset < s.blocks[b].offset + s.blocks[b].bytes &&
                         s.blocks[b].offset < s.blocks[a].offset + s.blocks[a].bytes;
      if (a == b || !share || s.storages[a].first > s.storages[b].first) continue;
      if (s.storages[a].last >= s.storages[b].first) return true;
      for (const size_t user : users[a]) {
        if (!behind[s.storages[b].first][user]) return true;
      }
    }
  }
  return false;
}

TEST_CASE("random placements, against all pairs") {
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return static_cast<uint32_t>(random() % n); };
  size_t conflicts = 0;
  constexpr size_t kRuns = 4000;
  for (size_t run = 0; run < kRuns; ++run) {
    PlanSample s;
    const uint32_t steps = 2 + below(9);
    s.add_storage(FX_SOURCE_INPUT, 4, FX_NONE, FX_NONE);
    s.add_tensor(0, {});
    s.add_input(tensor_word(0));
    s.blocks.push_back({0, 0, FX_BLOCK_GIVEN, 0});
    s.placement.stream_count = 1 + below(3);
    s.placement.arena_bytes = 8;
    std::vector<std::vector<uint32_t>> frees(steps);
    for (uint32_t i = 0; i < steps; ++i) {
      const uint32_t last = std::min(steps - 1, i + below(3));
      const uint32_t storage = s.add_storage(FX_SOURCE_PLANNED, 1, i, last);
      s.add_tensor(storage, {});
      s.tensors.back().dtype = 1;
      frees[last].push_back(storage);
      std::vector<FxWord> args{tensor_word(0)};
      for (uint32_t t = 1; t < storage; ++t) {
        if (s.storages[t].last >= i && below(2) == 0) args.push_back(tensor_word(t));
      }
      s.add_step(FX_STEP_KERNEL, args, {tensor_word(storage)}, frees[i]);
      const auto bytes = static_cast<int64_t>(1 + below(3));
      s.blocks.push_back({static_cast<int64_t>(below(9 - static_cast<size_t>(bytes))), bytes, FX_BLOCK_ARENA, 0});
      s.streams.push_back(static_cast<uint16_t>(below(s.placement.stream_count)));
      for (uint32_t k = 0; k < i; ++k) {
        if (s.streams[k] != s.streams[i] && below(3) != 0) s.events.push_back({k, i});
      }
    }
    s.tensors[0].dtype = 1;
    s.kernels.assign(steps, 0);
    s.workspaces.assign(steps, {0, 0, FX_BLOCK_NONE, 0});
    const std::vector<PlanFault> faults = check_placement(s.view(), s.place());
    INFO("run " << run << "\n" << all_messages(faults));
    const bool expected = has_conflict(s);
    REQUIRE(!faults.empty() == expected);
    if (expected) REQUIRE(faults[0].kind != PlanFaultKind::kFaultyPlan);
    conflicts += expected;
  }
  CHECK(conflicts > kRuns / 10);
  CHECK(conflicts < kRuns * 9 / 10);
}

template <class T>
void edit_array(std::mt19937_64& random, std::vector<T>& array) {
  if (array.empty()) return;
  auto* bytes = reinterpret_cast<unsigned char*>(&array[random() % array.size()]);
  constexpr size_t kSize = sizeof(T);
  const uint64_t special[] = {0, 1, FX_NONE, FX_NONE - 1, array.size(), random() % 16, random(), ~uint64_t{0}};
  const uint64_t value = special[random() % std::size(special)];
  const auto overwrite = [&](size_t width, uint64_t with) {
    width = std::min(kSize, width);
    std::memcpy(bytes + random() % (kSize / width) * width, &with, width);
  };
  const uint64_t kind = random() % 4;
  if (kind == 0) bytes[random() % kSize] ^= static_cast<unsigned char>(1u << (random() % 8));
  if (kind == 1) bytes[random() % kSize] = static_cast<unsigned char>(value);
  if (kind == 2) overwrite(4, value);
  if (kind == 3) overwrite(8, random() % 2 == 0 ? value : (random() % 64) << 8 | random() % 17);
}

// Shortens one array.
void shorten(std::mt19937_64& random, PlanSample& s) {
  const size_t keep = random();
  const auto cut = [&](auto& array) {
    if (!array.empty()) array.resize(keep % array.size());
  };
  const uint64_t which = random() % 8;
  if (which == 0) return cut(s.words);
  if (which == 1) return cut(s.storages);
  if (which == 2) return cut(s.tensors);
  if (which == 3) return cut(s.scalars);
  if (which == 4) return cut(s.strings);
  if (which == 5) return cut(s.graph_views);
  if (which == 6) return cut(s.indices);
  cut(s.steps);
}

void mutate_rest(std::mt19937_64& random, PlanSample& s) {
  const uint64_t which = random() % 6;
  if (which == 0) s.placement.stream_count = static_cast<uint32_t>(random() % 70);
  if (which == 1) s.placement.arena_bytes = static_cast<int64_t>(random());
  if (which == 2) s.placement.device = static_cast<uint32_t>(random() % 8);
  if (which == 3 && !s.strings.empty()) s.strings[random() % s.strings.size()].data = nullptr;
  if (which == 4) s.graph_views.assign(1 + random() % 2, random() % 2 == 0 ? nullptr : &s.plan);
  if (which == 5) edit_array(random, s.ops);
}

void mutate(std::mt19937_64& random, PlanSample& s) {
  const uint64_t which = random() % 24;
  if (which < 4) return edit_array(random, s.steps);
  if (which < 6) return edit_array(random, s.storages);
  if (which < 8) return edit_array(random, s.tensors);
  if (which < 11) return edit_array(random, s.words);
  if (which == 11) return edit_array(random, s.indices);
  if (which == 12) return edit_array(random, s.scalars);
  if (which == 13) return edit_array(random, s.code);
  if (which == 14) return edit_array(random, s.inputs);
  if (which == 15) return edit_array(random, s.outputs);
  if (which == 16) return edit_array(random, s.groups);
  if (which == 17) return edit_array(random, s.blocks);
  if (which == 18) return edit_array(random, s.events);
  if (which == 19) return edit_array(random, s.streams);
  if (which == 20) return edit_array(random, s.workspaces);
  if (which == 21) return shorten(random, s);
  if (which == 23) return mutate_rest(random, s);
  if (s.graphs.empty()) return edit_array(random, s.nodes);
  mutate(random, *s.graphs[random() % s.graphs.size()]);
}

TEST_CASE("edited plans do no harm") {
  const int runs = static_cast<int>(count_given("FXOPT_MUTATIONS", 10000));
  std::mt19937_64 random(1);
  int plans = 0;
  int placements = 0;
  for (int run = 0; run < runs; ++run) {
    PlanSample sample = run % 2 == 0 ? small_sample() : long_sample(10 + 10 * (run % 3 == 0));
    const uint64_t edits = 1 + random() % 3;
    for (uint64_t i = 0; i < edits; ++i) mutate(random, sample);
    for (const std::unique_ptr<PlanSample>& graph : sample.graphs) graph->view();
    const std::vector<PlanFault> of_plan = check_plan(sample.view());
    const std::vector<PlanFault> of_placement = check_placement(sample.view(), sample.place());
    REQUIRE(of_plan.size() <= kMaxPlanFaults);
    REQUIRE(of_placement.size() <= kMaxPlanFaults);
    // A placement may belong to a called graph, where more sources are legal.
    const bool is_source = kinds(of_plan) == "source" || kinds(of_plan) == "scalar-source";
    if (!of_plan.empty() && !is_source) REQUIRE(!of_placement.empty());
    plans += !of_plan.empty();
    placements += of_plan.empty() && !of_placement.empty();
  }
  CHECK(plans > runs / 4);
  CHECK(placements > runs / 50);
}

double seconds(const std::function<void()>& run) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

TEST_CASE("the time to check a plan grows with its steps") {
  PlanSample small = long_sample(20'000);
  PlanSample large = long_sample(160'000);
  const double of_small = seconds([&] { check_placement(small.view(), small.place()); });
  const double of_large = seconds([&] { check_placement(large.view(), large.place()); });
  CHECK(of_large < 30 * of_small);  // 8 times the steps: quadratic time would be 64 times as long
}

// Walking the shared arguments at each step would take quadratic time or longer.
TEST_CASE("plans that share everything are checked in little time") {
  PlanSample sample = long_sample(100'000);
  const uint32_t all = sample.add_words(std::vector<FxWord>(100'000, tensor_word(0)));
  for (FxStep& step : sample.steps) {
    step.args = all;
    step.num_args = 100'000;
  }
  CHECK(kinds(check_plan(sample.view())) == "too-large");
}

}  // namespace
}  // namespace fxopt
