#include "tests/runtime/plan_sample.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace fxopt {

namespace {

constexpr FxDType kFloat32 = 7;

FxBlock arena_block(int64_t offset, int64_t bytes) { return {offset, bytes, FX_BLOCK_ARENA, 0}; }
FxBlock block_of_kind(FxBlockKind kind) { return {0, 0, static_cast<uint32_t>(kind), 0}; }

}  // namespace

FxWord word_of(FxWordKind kind, uint64_t payload) { return payload << 8 | static_cast<uint64_t>(kind); }
FxWord int_word(int64_t value) { return word_of(FX_WORD_INT, static_cast<uint64_t>(value)); }
FxWord tensor_word(uint32_t index) { return word_of(FX_WORD_TENSOR, index); }
FxWord scalar_word(uint32_t index) { return word_of(FX_WORD_SCALAR, index); }

PlanSample::PlanSample() {
  plan.version = FX_PLAN_VERSION;
  plan.size = sizeof(FxPlan);
  plan.name = add_string("f");
  ops.push_back({add_string("op"), FX_NONE});
  placement.version = FX_PLAN_VERSION;
  placement.size = sizeof(FxPlacement);
  placement.device = FX_NONE;
  placement.stream_count = 1;
}

uint32_t PlanSample::add_string(const char* text) {
  strings.push_back({text, std::strlen(text)});
  return static_cast<uint32_t>(strings.size() - 1);
}

uint32_t PlanSample::add_storage(uint8_t source, int64_t bytes, uint32_t first, uint32_t last) {
  const auto index = static_cast<uint32_t>(storages.size());
  FxStorage storage{};
  storage.bytes = int_word(bytes);
  storage.first = first;
  storage.last = last;
  storage.alias_class = index;
  storage.device = FX_NONE;
  storage.node = FX_NONE;
  storage.source = source;
  storage.role = FX_ROLE_TEMPORARY;
  storages.push_back(storage);
  return index;
}

uint32_t PlanSample::add_tensor(uint32_t storage, const std::vector<FxWord>& sizes) {
  FxTensor tensor{};
  tensor.storage = storage;
  tensor.dims = add_words(sizes);
  std::vector<FxWord> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = int_word(stride);
    if ((sizes[i] & 0xFF) == FX_WORD_INT) stride *= static_cast<int64_t>(sizes[i]) >> 8;
  }
  add_words(strides);
  tensor.offset = int_word(0);
  tensor.node = FX_NONE;
  tensor.dtype = kFloat32;
  tensor.rank = static_cast<uint8_t>(sizes.size());
  tensors.push_back(tensor);
  return static_cast<uint32_t>(tensors.size() - 1);
}

uint32_t PlanSample::add_words(const std::vector<FxWord>& added) {
  const auto first = static_cast<uint32_t>(words.size());
  words.insert(words.end(), added.begin(), added.end());
  return first;
}

uint32_t PlanSample::add_indices(const std::vector<uint32_t>& added) {
  const auto first = static_cast<uint32_t>(indices.size());
  indices.insert(indices.end(), added.begin(), added.end());
  return first;
}

uint32_t PlanSample::add_step(uint8_t kind, const std::vector<FxWord>& args, const std::vector<FxWord>& results,
                              const std::vector<uint32_t>& frees) {
  const auto index = static_cast<uint32_t>(steps.size());
  FxStep step{};
  step.node = step.draw = step.group = step.other = step.stream = FX_NONE;
  step.kind = kind;
  steps.push_back(step);
  set_args(index, args);
  set_results(index, results);
  set_frees(index, frees);
  return index;
}

FxWord PlanSample::add_list(const std::vector<FxWord>& items) {
  const uint32_t header = add_words({int_word(static_cast<int64_t>(items.size()))});
  add_words(items);
  return word_of(FX_WORD_LIST, header);
}

uint32_t PlanSample::add_scalar(uint8_t source, uint32_t ready) {
  FxScalar scalar{};
  scalar.name = FX_NONE;
  scalar.source = source;
  scalar.ready = ready;
  scalars.push_back(scalar);
  return static_cast<uint32_t>(scalars.size() - 1);
}

void PlanSample::add_input(FxWord value) { inputs.push_back({FX_NONE, FX_NONE, value, 0, 0, FX_NONE, 0}); }
void PlanSample::add_output(FxWord value, uint32_t is_input) { outputs.push_back({FX_NONE, 0, value, is_input, 0}); }

void PlanSample::set_args(uint32_t step, const std::vector<FxWord>& args) {
  steps[step].args = add_words(args);
  steps[step].num_args = static_cast<uint32_t>(args.size());
}
void PlanSample::set_results(uint32_t step, const std::vector<FxWord>& results) {
  steps[step].results = add_words(results);
  steps[step].num_results = static_cast<uint32_t>(results.size());
}
void PlanSample::set_writes(uint32_t step, const std::vector<uint32_t>& written) {
  steps[step].writes = add_indices(written);
  steps[step].num_writes = static_cast<uint32_t>(written.size());
  steps[step].flags =
      static_cast<uint8_t>((steps[step].flags & ~FX_STEP_WRITES) | (written.empty() ? 0 : FX_STEP_WRITES));
  for (const uint32_t storage : written) storages[storage].flags |= FX_STORAGE_WRITTEN;
}
void PlanSample::set_frees(uint32_t step, const std::vector<uint32_t>& freed) {
  steps[step].frees = add_indices(freed);
  steps[step].num_frees = static_cast<uint32_t>(freed.size());
}
void PlanSample::set_after(uint32_t step, const std::vector<uint32_t>& earlier) {
  steps[step].after = add_indices(earlier);
  steps[step].num_after = static_cast<uint32_t>(earlier.size());
}

const FxPlan& PlanSample::view() {
  const auto set = [](auto& data, uint64_t& count, const auto& array) {
    data = array.data();
    count = array.size();
  };
  if (graph_views.empty()) {
    for (const std::unique_ptr<PlanSample>& graph : graphs) graph_views.push_back(&graph->view());
  }
  set(plan.steps, plan.num_steps, steps);
  set(plan.storages, plan.num_storages, storages);
  set(plan.tensors, plan.num_tensors, tensors);
  set(plan.words, plan.num_words, words);
  set(plan.indices, plan.num_indices, indices);
  set(plan.numbers, plan.num_numbers, numbers);
  set(plan.scalars, plan.num_scalars, scalars);
  set(plan.code, plan.num_code, code);
  set(plan.inputs, plan.num_inputs, inputs);
  set(plan.outputs, plan.num_outputs, outputs);
  set(plan.draws, plan.num_draws, draws);
  set(plan.groups, plan.num_groups, groups);
  set(plan.ops, plan.num_ops, ops);
  set(plan.nodes, plan.num_nodes, nodes);
  set(plan.strings, plan.num_strings, strings);
  set(plan.graphs, plan.num_graphs, graph_views);
  return plan;
}

const FxPlacement& PlanSample::place() {
  const auto set = [](auto& data, uint64_t& count, const auto& array) {
    data = array.data();
    count = array.size();
  };
  set(placement.blocks, placement.num_blocks, blocks);
  set(placement.streams, placement.num_streams, streams);
  set(placement.events, placement.num_events, events);
  set(placement.workspaces, placement.num_workspaces, workspaces);
  set(placement.kernels, placement.num_kernels, kernels);
  return placement;
}

PlanSample small_sample() {
  PlanSample s;
  const std::vector<FxWord> sizes{int_word(4), int_word(4)};
  const uint32_t x = s.add_storage(FX_SOURCE_INPUT, 64, FX_NONE, FX_NONE);
  const uint32_t a = s.add_storage(FX_SOURCE_PLANNED, 64, 0, 3);
  const uint32_t b = s.add_storage(FX_SOURCE_PLANNED, 64, 1, 4);
  const uint32_t c = s.add_storage(FX_SOURCE_PLANNED, 64, 2, 4);
  const uint32_t d = s.add_storage(FX_SOURCE_PLANNED, 64, 4, 8);
  const uint32_t late = s.add_storage(FX_SOURCE_LATE, 0, 5, 6);
  const uint32_t e = s.add_storage(FX_SOURCE_PLANNED, 64, 6, 8);
  s.storages[d].flags = s.storages[e].flags = FX_STORAGE_RETURNED;

  const uint32_t size = s.add_scalar(FX_SCALAR_DIM, 0);
  const uint32_t twice = s.add_scalar(FX_SCALAR_CODE, 0);
  const uint32_t found = s.add_scalar(FX_SCALAR_STEP, 6);
  const uint32_t found_bytes = s.add_scalar(FX_SCALAR_CODE, 6);
  const auto push = [&](FxWord word) { s.code.push_back({word, FX_CODE_PUSH, 0}); };
  for (const auto& [scalar, of, by] : {std::tuple{twice, size, 2}, std::tuple{found_bytes, found, 4}}) {
    s.scalars[scalar].code = static_cast<uint32_t>(s.code.size());
    s.scalars[scalar].num_code = 3;
    push(scalar_word(of));
    push(int_word(by));
    s.code.push_back({0, FX_CODE_MUL, 0});
  }
  s.storages[late].bytes = scalar_word(found_bytes);

  for (const uint32_t storage : {x, a, b, c, d}) s.add_tensor(storage, sizes);
  s.add_tensor(late, {scalar_word(found)});
  s.add_tensor(e, sizes);
  s.add_input(tensor_word(x));
  s.groups.push_back({s.add_string("world"), s.add_indices({0, 1}), 2, 0});

  s.graphs.push_back(std::make_unique<PlanSample>());
  PlanSample& graph = *s.graphs.back();
  graph.add_storage(FX_SOURCE_OUTER, 64, FX_NONE, FX_NONE);
  graph.add_storage(FX_SOURCE_PLANNED, 64, 0, 0);
  graph.storages[1].flags = FX_STORAGE_RETURNED;
  graph.add_tensor(0, sizes);
  graph.add_tensor(1, sizes);
  graph.add_scalar(FX_SCALAR_OUTER, 0);
  graph.add_input(tensor_word(0));
  graph.add_step(FX_STEP_KERNEL, {tensor_word(0), scalar_word(0)}, {tensor_word(1)});
  graph.add_output(tensor_word(1));

  s.add_step(FX_STEP_KERNEL, {tensor_word(x)}, {tensor_word(a)});
  s.add_step(FX_STEP_COLLECTIVE, {tensor_word(a)}, {tensor_word(b)});
  s.add_step(FX_STEP_KERNEL, {tensor_word(x)}, {tensor_word(c)});
  s.add_step(FX_STEP_WAIT, {tensor_word(b)}, {tensor_word(b)}, {a});
  const FxWord inner = s.add_list({tensor_word(c), scalar_word(twice)});
  s.add_step(FX_STEP_KERNEL, {s.add_list({tensor_word(b), inner})}, {tensor_word(d), 0}, {b, c});
  s.add_step(FX_STEP_KERNEL, {tensor_word(d)}, {tensor_word(late)});
  s.add_step(FX_STEP_CALL, {tensor_word(late), word_of(FX_WORD_GRAPH, 0)}, {tensor_word(e)}, {late});
  s.add_step(FX_STEP_COLLECTIVE, {tensor_word(e)}, {tensor_word(e)});
  s.add_step(FX_STEP_WAIT, {tensor_word(e)}, {tensor_word(e)});
  s.set_writes(4, {c});
  s.set_writes(7, {e});
  s.steps[1].group = s.steps[7].group = 0;
  s.steps[7].sequence = 1;
  s.steps[3].other = 1;
  s.steps[8].other = 7;
  const FxWord empty = s.add_list({});
  s.steps[4].keywords = s.add_words({word_of(FX_WORD_STRING, s.add_string("key")), empty});
  s.steps[4].num_keywords = 1;

  s.add_output(tensor_word(d));
  s.add_output(tensor_word(x), 0);
  s.add_output(scalar_word(found));
  s.add_output(s.add_list({tensor_word(e)}));

  s.placement.stream_count = 2;
  s.placement.arena_bytes = 320;
  s.placement.lower_bound = 256;
  s.streams = {0, 1, 0, 0, 0, 0, 0, 1, 0};
  s.events = {{0, 1}, {1, 3}, {6, 7}, {7, 8}};
  s.kernels.assign(9, 0);
  s.workspaces.assign(9, block_of_kind(FX_BLOCK_NONE));
  s.blocks = {block_of_kind(FX_BLOCK_GIVEN), arena_block(0, 64),           arena_block(64, 64), arena_block(128, 64),
              arena_block(192, 64),          block_of_kind(FX_BLOCK_LATE), arena_block(0, 64)};
  s.workspaces[5] = arena_block(64, 64);
  return s;
}

PlanSample long_sample(uint32_t steps) {
  PlanSample s;
  const std::vector<FxWord> sizes{int_word(8), int_word(16)};
  const uint32_t x = s.add_storage(FX_SOURCE_INPUT, 512, FX_NONE, FX_NONE);
  s.add_tensor(x, sizes);
  s.add_input(tensor_word(0));
  s.blocks.push_back(block_of_kind(FX_BLOCK_GIVEN));
  const uint32_t rows = s.add_scalar(FX_SCALAR_DIM, 0);
  s.groups.push_back({s.add_string("world"), 0, 0, 0});
  s.placement.stream_count = 2;
  s.placement.arena_bytes = 16 * 512;
  std::vector<std::vector<uint32_t>> frees(steps);
  std::vector<uint32_t> made(steps, FX_NONE);  // tensors; each has the number of its storage
  for (uint32_t i = 0; i < steps; ++i) {
    const bool is_collective = i % 10 == 5;
    const bool is_wait = i % 10 == 9;
    std::vector<FxWord> results;
    if (!is_wait) {
      const uint32_t last = std::min(i + 6, steps - 1);
      made[i] = s.add_storage(FX_SOURCE_PLANNED, 512, i, last);
      s.add_tensor(made[i], sizes);
      frees[last].push_back(made[i]);
      results.push_back(tensor_word(made[i]));
      s.blocks.push_back(arena_block(i % 16 * 512, 512));
    }
    std::vector<FxWord> args;
    if (is_collective) {
      args = {tensor_word(made[i - 1])};
    } else if (is_wait) {
      args = {tensor_word(made[i - 4])};
    } else {
      std::vector<FxWord> items{tensor_word(0)};
      for (uint32_t k = i > 5 ? i - 5 : 0; k < i; ++k) {
        const bool is_there = k % 10 == 5 ? i > k + 4 : k % 10 != 9;
        if (is_there) items.push_back(tensor_word(made[k]));
      }
      args = {s.add_list(items), scalar_word(rows), int_word(1)};
    }
    s.add_step(is_collective ? FX_STEP_COLLECTIVE : is_wait ? FX_STEP_WAIT : FX_STEP_KERNEL, args, results, frees[i]);
    s.streams.push_back(is_collective ? 1 : 0);
    if (is_collective) {
      s.steps[i].group = 0;
      s.steps[i].sequence = i / 10;
      s.events.push_back({i - 1, i});
    }
    if (is_wait) {
      s.steps[i].other = i - 4;
      s.events.push_back({i - 4, i});
    }
  }
  s.kernels.assign(steps, 0);
  s.workspaces.assign(steps, block_of_kind(FX_BLOCK_NONE));
  return s;
}

}  // namespace fxopt
