#include "runtime/plan/print.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include "core/text.h"
#include "ir/graph/types.h"
#include "runtime/plan/plan.h"

namespace fxopt {
namespace {

constexpr std::array<std::string_view, 8> kStepKinds = {"kernel", "collective", "wait",   "message",
                                                        "call",   "scalar",     "assert", "stream"};
constexpr std::array<std::string_view, 5> kSources = {"planned", "late", "input", "constant", "outer"};
constexpr std::array<std::string_view, 11> kRoles = {"parameter",       "buffer",    "input",    "constant",
                                                     "optimizer_state", "gradient",  "saved",    "recomputed",
                                                     "communication",   "temporary", "workspace"};
constexpr std::array<std::string_view, FX_NUM_CODE_OPS> kCodeOps = {
    "",   "+",  "-",  "*", "//", "%",   "/",  "**",  "neg",   "abs",     "min",      "max",      "==",
    "!=", "<=", ">=", "<", ">",  "and", "or", "not", "where", "ceildiv", "indexing", "pow2floor"};

std::string node_text(const FxPlan& plan, uint32_t node) {
  return "%" + std::string(node < plan.num_nodes ? text_at(plan, plan.nodes[node].name) : "");
}

std::string real_text(int64_t bits) {
  std::array<char, 40> buffer{};
  const int length = std::snprintf(buffer.data(), buffer.size(), "%.17g", std::bit_cast<double>(bits));
  return {buffer.data(), static_cast<size_t>(length)};
}

std::string words_text(const FxPlan& plan, std::span<const FxWord> words) {
  std::string text;
  for (const FxWord word : words) text += (text.empty() ? "" : ", ") + word_text(plan, word);
  return text;
}

bool is_row_major(const FxPlan& plan, const FxTensor& tensor) {
  int64_t step = 1;
  for (uint32_t i = tensor.rank; i-- > 0;) {
    const FxWord size = plan.words[tensor.dims + i], stride = plan.words[tensor.dims + tensor.rank + i];
    if (kind_of(stride) != FX_WORD_INT) return false;
    const bool is_one = kind_of(size) == FX_WORD_INT && small_int_of(size) == 1;
    if (!is_one && small_int_of(stride) != step) return false;
    if (kind_of(size) != FX_WORD_INT) return i == 0;
    step *= std::max<int64_t>(small_int_of(size), 1);
  }
  return true;
}

void print_inputs(const FxPlan& plan, std::string& text) {
  for (uint64_t i = 0; i < plan.num_inputs; ++i) {
    const FxInput& input = plan.inputs[i];
    text += "  input " + std::string(text_at(plan, input.name)) + " = " + word_text(plan, input.value);
    if (kind_of(input.value) == FX_WORD_TENSOR) text += ": " + tensor_text(plan, index_of(input.value));
    if (input.first > 0) text += ", before step " + std::to_string(input.first);
    text += '\n';
  }
}

void print_scalars(const FxPlan& plan, std::string& text) {
  for (uint32_t i = 0; i < plan.num_scalars; ++i) {
    const FxScalar& scalar = plan.scalars[i];
    text += "  n" + std::to_string(i);
    if (scalar.name != FX_NONE) text += " " + std::string(text_at(plan, scalar.name));
    switch (scalar.source) {
      case FX_SCALAR_DIM:
        text += " = dimension " + std::to_string(scalar.dim) + " of t" + std::to_string(scalar.tensor);
        break;
      case FX_SCALAR_INPUT:
        text += " = an input";
        break;
      case FX_SCALAR_STEP:
        text += " = of step " + std::to_string(scalar.ready - 1);
        break;
      case FX_SCALAR_RANK:
        text += " = of the rank";
        break;
      case FX_SCALAR_OUTER:
        text += " = the caller's";
        break;
      default:
        text += " =";
        for (uint32_t k = 0; k < scalar.num_code; ++k) {
          const FxCode& code = plan.code[scalar.code + k];
          text += " " + (code.op == FX_CODE_PUSH ? word_text(plan, code.push) : std::string(kCodeOps[code.op]));
        }
    }
    text += '\n';
  }
}

void print_storages(const FxPlan& plan, std::string& text) {
  for (uint32_t i = 0; i < plan.num_storages; ++i) {
    const FxStorage& storage = plan.storages[i];
    text += "  s" + std::to_string(i) + " " + std::string(kSources[storage.source]) + " " +
            std::string(kRoles[storage.role]) + " " + word_text(plan, storage.bytes) + " B";
    if (storage.first != FX_NONE)
      text += ", steps " + std::to_string(storage.first) + " to " + std::to_string(storage.last);
    if (storage.device != FX_NONE) text += ", " + std::string(text_at(plan, storage.device));
    if ((storage.flags & FX_STORAGE_WRITTEN) != 0) text += ", written";
    if ((storage.flags & FX_STORAGE_RETURNED) != 0) text += ", returned";
    text += ", " + node_text(plan, storage.node) + '\n';
  }
}

void print_step(const FxPlan& plan, uint32_t number, std::string& text) {
  const FxStep& step = plan.steps[number];
  text += "  " + std::to_string(number) + " ";
  if (step.kind != FX_STEP_KERNEL) text += std::string(kStepKinds[step.kind]) + " ";
  text += std::string(text_at(plan, plan.ops[step.op].name)) + "(" +
          words_text(plan, {plan.words + step.args, step.num_args});
  for (uint32_t i = 0; i < step.num_keywords; ++i) {
    const FxWord key = plan.words[step.keywords + 2 * i];
    text += (i > 0 || step.num_args > 0 ? ", " : "") + std::string(text_at(plan, index_of(key))) + "=" +
            word_text(plan, plan.words[step.keywords + 2 * i + 1]);
  }
  text += ")";
  for (uint32_t i = 0; i < step.num_results; ++i) {
    const FxWord word = plan.words[step.results + i];
    text += (i > 0 ? "; " : " -> ") + word_text(plan, word);
    if (kind_of(word) == FX_WORD_TENSOR) text += ": " + tensor_text(plan, index_of(word));
  }
  const auto list = [&](std::string_view what, char sigil, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      text += (i > 0 ? " " : std::string(", ") + std::string(what) + " ");
      if (sigil != ' ') text += sigil;
      text += std::to_string(plan.indices[first + i]);
    }
  };
  list("writes", 's', step.writes, step.num_writes);
  list("frees", 's', step.frees, step.num_frees);
  list("after", ' ', step.after, step.num_after);
  if ((step.flags & FX_STEP_TRANSFERS) != 0) text += ", transfers";
  if (step.other != FX_NONE) text += ", for step " + std::to_string(step.other);
  if (step.group != FX_NONE) {
    text += ", call " + std::to_string(step.sequence) + " of group " +
            std::string(text_at(plan, plan.groups[step.group].name));
  }
  if (step.draw != FX_NONE) {
    const FxDraw& draw = plan.draws[step.draw];
    text += ", draw " + std::to_string(draw.invocation) + ":" + std::to_string(draw.uid);
  }
  text += ", " + node_text(plan, step.node) + '\n';
}

}  // namespace

std::string word_text(const FxPlan& plan, FxWord word) {
  const uint32_t index = index_of(word);
  switch (kind_of(word)) {
    case FX_WORD_NONE:
      return "none";
    case FX_WORD_INT:
      return std::to_string(small_int_of(word));
    case FX_WORD_NUMBER:
      return std::to_string(plan.numbers[index]);
    case FX_WORD_DOUBLE:
      return real_text(plan.numbers[index]);
    case FX_WORD_BOOL:
      return small_int_of(word) != 0 ? "true" : "false";
    case FX_WORD_SCALAR:
      return "n" + std::to_string(index);
    case FX_WORD_TENSOR:
      return "t" + std::to_string(index);
    case FX_WORD_LIST:
      return "[" + words_text(plan, items_of(plan, word)) + "]";
    case FX_WORD_STRING:
    case FX_WORD_DEVICE:
      return '"' + std::string(text_at(plan, index)) + '"';
    case FX_WORD_DTYPE:
      return std::string(name_of(static_cast<DType>(index)));
    case FX_WORD_LAYOUT:
      return std::string(name_of(static_cast<Layout>(index)));
    case FX_WORD_FORMAT:
      return std::string(name_of(static_cast<MemoryFormat>(index)));
    case FX_WORD_GRAPH:
      return "graph " + std::string(text_at(*plan.graphs[index], plan.graphs[index]->name));
    case FX_WORD_GROUP:
      return "group " + std::string(text_at(plan, plan.groups[index].name));
    case FX_WORD_COMPLEX:
      return "(" + real_text(plan.numbers[index]) + ", " + real_text(plan.numbers[index + 1]) + ")";
  }
  return "?";
}

std::string tensor_text(const FxPlan& plan, uint32_t index) {
  const FxTensor& tensor = plan.tensors[index];
  std::string text;
  if ((tensor.flags & FX_TENSOR_UNKNOWN) != 0) {
    text = "not recorded";
  } else {
    text = std::string(name_of(static_cast<DType>(tensor.dtype))) + "[" +
           words_text(plan, {plan.words + tensor.dims, tensor.rank}) + "]";
    if (!is_row_major(plan, tensor))
      text += "(" + words_text(plan, {plan.words + tensor.dims + tensor.rank, tensor.rank}) + ")";
    if (tensor.offset != make_word(FX_WORD_INT, 0)) text += "+" + word_text(plan, tensor.offset);
  }
  return tensor.storage == FX_NONE ? text : text + " on s" + std::to_string(tensor.storage);
}

std::string print_plan(const FxPlan& plan) {
  std::string text = "plan " + std::string(text_at(plan, plan.name)) + ": " + std::to_string(plan.num_steps) +
                     " steps, " + std::to_string(plan.num_storages) + " storages, " + std::to_string(plan.num_tensors) +
                     " tensors\n";
  print_inputs(plan, text);
  print_scalars(plan, text);
  print_storages(plan, text);
  for (uint32_t i = 0; i < plan.num_steps; ++i) print_step(plan, i, text);
  for (uint64_t i = 0; i < plan.num_outputs; ++i) {
    const FxOutput& output = plan.outputs[i];
    text += "  output " + word_text(plan, output.value);
    if (output.name != FX_NONE) text += ", " + std::string(text_at(plan, output.name));
    if (output.is_input != FX_NONE) text += ", input " + std::string(text_at(plan, plan.inputs[output.is_input].name));
    text += '\n';
  }
  for (uint64_t i = 0; i < plan.num_graphs; ++i) text += print_plan(*plan.graphs[i]);
  return text;
}

std::string print_placement(const FxPlan& plan, const FxPlacement& placement) {
  const std::string_view device = text_at(plan, placement.device);
  std::string text =
      "placement on " + (device.empty() ? std::string("a device that is not recorded") : std::string(device)) +
      ": arena of " + std::to_string(placement.arena_bytes) + " B, at least " + std::to_string(placement.lower_bound) +
      " B, " + std::to_string(placement.stream_count) + (placement.stream_count == 1 ? " stream\n" : " streams\n");
  std::vector<uint64_t> order;
  for (uint64_t i = 0; i < placement.num_blocks; ++i) {
    if (placement.blocks[i].kind == FX_BLOCK_ARENA) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](uint64_t a, uint64_t b) { return placement.blocks[a].offset < placement.blocks[b].offset; });
  for (const uint64_t i : order) {
    const FxStorage& storage = plan.storages[i];
    text += "  " + std::to_string(placement.blocks[i].offset) + " s" + std::to_string(i) + " " +
            std::to_string(placement.blocks[i].bytes) + " B, steps " + std::to_string(storage.first) + " to " +
            std::to_string(storage.last) + "\n";
  }
  for (uint64_t i = 0; i < placement.num_events; ++i) {
    const FxEvent& event = placement.events[i];
    text +=
        "  step " + std::to_string(event.awaited_by) + " waits for step " + std::to_string(event.recorded_by) + "\n";
  }
  return text;
}

}  // namespace fxopt
