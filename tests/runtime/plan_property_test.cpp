// Plans after random pipelines, and wrong edits of plans of real graphs.

#include <array>
#include <cstdio>
#include <functional>
#include <map>

#include "ir/prepare.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/plan/check.h"
#include "runtime/plan/lower.h"
#include "runtime/plan/place.h"
#include "runtime/plan/plan.h"
#include "tests/catch.h"
#include "tests/property/random_pipeline.h"
#include "tests/testdata/files.h"

namespace fxopt {
namespace {

constexpr std::array kTwins = {"gpt2_joint_twin.pb.zst",    "gpt2_flb_twin.pb.zst",       "llama8b_flb_twin.pb.zst",
                               "llama8b_joint_twin.pb.zst", "deepseek16b_twin.pb.zst",    "built_hsdp.pb.zst",
                               "exported_twin.pb.zst",      "resnet50_joint_twin.pb.zst", "pair_forward_twin.pb.zst",
                               "llama1b_twin.pb.zst",       "titan_debug.pb.zst",         "built_pipeline_1.pb.zst"};

void require_clean(const std::vector<PlanFault>& faults) {
  for (const PlanFault& fault : faults) FAIL_CHECK(plan_fault_name(fault.kind) << ": " << fault.message);
}

std::vector<PlanPlacement> placements_of(const FxPlan& plan, uint32_t streams) {
  std::vector<PlanPlacement> placements;
  for (const uint32_t device : devices_of(plan)) {
    PlaceOptions options;
    options.device = device;
    options.streams = streams;
    options.arena_effort = 0;
    Result<PlanPlacement> placed = place(plan, options);
    if (placed.ok()) placements.push_back(*std::move(placed));
  }
  return placements;
}

TEST_CASE("plan property: what random pipelines leave is planned and placed without a fault", "[property]") {
  constexpr size_t kPipelines = 500;
  Dice dice(47);
  size_t planned = 0, tried = 0;
  std::map<std::string, size_t> refusals;
  while (planned < kPipelines && ++tried < 4 * kPipelines) {
    const std::string file = kTwins[tried % kTwins.size()];
    const std::string text = random_pipeline(dice);
    const Result<Pipeline> pipeline = parse_pipeline(text);
    if (!pipeline.ok()) continue;
    const std::unique_ptr<Module> module = load_testdata(file);
    prepare(*module);
    RunOptions options;
    options.numerics = Numerics::kChangesNumerics;
    options.prove = false;
    if (!run_pipeline(*module, *pipeline, options).ok()) continue;
    INFO(file << ": " << text);
    const Result<std::unique_ptr<Plan>> plan = lower_step(*module);
    if (!plan.ok()) {
      ++refusals[plan.error().message];
      CHECK(plan.error().code != ErrorCode::kInternal);
      continue;
    }
    ++planned;
    const FxPlan& view = (*plan)->view();
    require_clean(check_plan(view));
    for (const uint32_t streams : {1u, 2u}) {
      for (const PlanPlacement& placed : placements_of(view, streams))
        require_clean(check_placement(view, placed.view()));
    }
  }
  for (const auto& [message, count] : refusals) WARN(count << " refused: " << message);
  CHECK(planned == kPipelines);
}

// Edits a plan or its placement, and returns how to undo that. Returns nothing if the place that
// was drawn does not allow the edit.
using Undo = std::function<void()>;
using PlanEdit = std::function<Undo(Plan&, PlanPlacement&, Dice&)>;

template <class T>
Undo change(T& field, T value) {
  const T before = field;
  if (before == value) return nullptr;
  field = value;
  return [&field, before] { field = before; };
}

template <class T>
T* any(std::vector<T>& rows, Dice& dice) {
  return rows.empty() ? nullptr : &rows[roll(dice, rows.size())];
}

// A storage that one step produces and a later step uses.
FxStorage* any_storage(Plan& plan, Dice& dice) {
  for (int i = 0; i < 50; ++i) {
    FxStorage* storage = any(plan.storages, dice);
    if (storage != nullptr && storage->source == FX_SOURCE_PLANNED && storage->first != FX_NONE &&
        storage->first < storage->last && (storage->flags & FX_STORAGE_RETURNED) == 0) {
      return storage;
    }
  }
  return nullptr;
}

FxStep* any_step(Plan& plan, Dice& dice, const std::function<bool(const FxStep&)>& fits) {
  for (int i = 0; i < 200; ++i) {
    FxStep* step = any(plan.steps, dice);
    if (step != nullptr && fits(*step)) return step;
  }
  return nullptr;
}

struct NamedEdit {
  const char* name;
  PlanEdit edit;
};

const std::vector<NamedEdit>& wrong_edits() {
  static const std::vector<NamedEdit> kEdits = {
      {"a lifetime ends a step early",
       [](Plan& plan, PlanPlacement&, Dice& dice) -> Undo {
         FxStorage* storage = any_storage(plan, dice);
         return storage == nullptr ? nullptr : change(storage->last, storage->last - 1);
       }},
      {"a lifetime begins a step late",
       [](Plan& plan, PlanPlacement&, Dice& dice) -> Undo {
         FxStorage* storage = any_storage(plan, dice);
         return storage == nullptr ? nullptr : change(storage->first, storage->first + 1);
       }},
      {"a storage is not freed",
       [](Plan& plan, PlanPlacement&, Dice& dice) -> Undo {
         FxStep* step = any_step(plan, dice, [](const FxStep& row) { return row.num_frees > 0; });
         return step == nullptr ? nullptr : change(step->num_frees, step->num_frees - 1);
       }},
      {"a storage is smaller than its tensors",
       [](Plan& plan, PlanPlacement&, Dice& dice) -> Undo {
         FxStorage* storage = any_storage(plan, dice);
         if (storage == nullptr || kind_of(storage->bytes) != FX_WORD_INT || small_int_of(storage->bytes) == 0)
           return nullptr;
         return change(storage->bytes, make_word(FX_WORD_INT, 0));
       }},
      {"a tensor begins beyond its storage",
       [](Plan& plan, PlanPlacement&, Dice& dice) -> Undo {
         FxTensor* tensor = any(plan.tensors, dice);
         if (tensor == nullptr || tensor->storage == FX_NONE || tensor->rank == 0) return nullptr;
         const FxStorage& storage = plan.storages[tensor->storage];
         const bool is_known =
             kind_of(storage.bytes) == FX_WORD_INT && kind_of(plan.words[tensor->dims]) == FX_WORD_INT;
         if (!is_known || small_int_of(storage.bytes) == 0) return nullptr;
         for (uint32_t i = 0; i < 2u * tensor->rank; ++i) {
           const FxWord word = plan.words[tensor->dims + i];
           if (kind_of(word) != FX_WORD_INT || (i < tensor->rank && small_int_of(word) == 0)) return nullptr;
         }
         return change(tensor->offset, make_word(FX_WORD_INT, static_cast<uint64_t>(small_int_of(storage.bytes))));
       }},
      {"a write is not listed",
       [](Plan& plan, PlanPlacement&, Dice& dice) -> Undo {
         FxStep* step = any_step(plan, dice, [](const FxStep& row) { return row.num_writes == 1; });
         return step == nullptr ? nullptr : change(step->num_writes, 0u);
       }},
      {"a wait names no collective",
       [](Plan& plan, PlanPlacement&, Dice& dice) -> Undo {
         FxStep* step =
             any_step(plan, dice, [](const FxStep& row) { return row.kind == FX_STEP_WAIT && row.other != FX_NONE; });
         return step == nullptr ? nullptr : change(step->other, static_cast<uint32_t>(step - plan.steps.data()));
       }},
      {"two collectives of a group change places",
       [](Plan& plan, PlanPlacement&, Dice& dice) -> Undo {
         FxStep* step = any_step(plan, dice, [](const FxStep& row) { return row.kind == FX_STEP_COLLECTIVE; });
         return step == nullptr ? nullptr : change(step->sequence, step->sequence + 1);
       }},
      {"a step reads what is made later",
       [](Plan& plan, PlanPlacement&, Dice& dice) -> Undo {
         FxStep* step = any_step(plan, dice, [&](const FxStep& row) {
           return row.num_args > 0 && kind_of(plan.words[row.args]) == FX_WORD_TENSOR && &row != &plan.steps.back();
         });
         if (step == nullptr) return nullptr;
         for (FxStep* later = step + 1; later <= &plan.steps.back(); ++later) {
           for (uint32_t i = 0; i < later->num_results; ++i) {
             const FxWord word = plan.words[later->results + i];
             if (kind_of(word) != FX_WORD_TENSOR) continue;
             const uint32_t storage = plan.tensors[index_of(word)].storage;
             const uint32_t place = static_cast<uint32_t>(step - plan.steps.data());
             if (storage != FX_NONE && plan.storages[storage].first != FX_NONE &&
                 plan.storages[storage].first > place && plan.storages[storage].source == FX_SOURCE_PLANNED)
               return change(plan.words[step->args], word);
           }
         }
         return nullptr;
       }},
      {"an output shares an input's tensor",
       [](Plan& plan, PlanPlacement&, Dice& dice) -> Undo {
         FxOutput* output = any(plan.outputs, dice);
         const FxInput* input = any(plan.inputs, dice);
         if (output == nullptr || input == nullptr || kind_of(input->value) != FX_WORD_TENSOR ||
             output->is_input != FX_NONE)
           return nullptr;
         return change(output->value, input->value);
       }},
      {"a scalar is known too early",
       [](Plan& plan, PlanPlacement&, Dice& dice) -> Undo {
         FxScalar* scalar = any(plan.scalars, dice);
         return scalar == nullptr || scalar->ready == 0 ? nullptr : change(scalar->ready, 0u);
       }},
      {"two storages that live together share bytes",
       [](Plan& plan, PlanPlacement& placed, Dice& dice) -> Undo {
         const FxStorage* storage = any_storage(plan, dice);
         if (storage == nullptr) return nullptr;
         const size_t one = static_cast<size_t>(storage - plan.storages.data());
         for (size_t other = 0; other < plan.storages.size(); ++other) {
           const FxStorage& row = plan.storages[other];
           if (other == one || row.first == FX_NONE || row.first > storage->last || storage->first > row.last) continue;
           if (placed.blocks[one].kind == FX_BLOCK_ARENA && placed.blocks[other].kind == FX_BLOCK_ARENA)
             return change(placed.blocks[one].offset, placed.blocks[other].offset);
         }
         return nullptr;
       }},
      {"a block is smaller than its storage",
       [](Plan& plan, PlanPlacement& placed, Dice& dice) -> Undo {
         FxBlock* block = any(placed.blocks, dice);
         if (block == nullptr || block->kind != FX_BLOCK_ARENA) return nullptr;
         const FxWord bytes = plan.storages[static_cast<size_t>(block - placed.blocks.data())].bytes;
         if (kind_of(bytes) != FX_WORD_INT) return nullptr;  // known only at run time
         return change(block->bytes, block->bytes - 1);
       }},
      {"a block reaches beyond the arena",
       [](Plan&, PlanPlacement& placed, Dice& dice) -> Undo {
         FxBlock* block = any(placed.blocks, dice);
         if (block == nullptr || block->kind != FX_BLOCK_ARENA) return nullptr;
         return change(block->offset, placed.arena_bytes);
       }},
      {"an event is not awaited",
       [](Plan&, PlanPlacement& placed, Dice& dice) -> Undo {
         if (placed.events.empty()) return nullptr;
         const size_t at = roll(dice, placed.events.size());
         const FxEvent event = placed.events[at];
         placed.events.erase(placed.events.begin() + static_cast<ptrdiff_t>(at));
         return
             [&placed, at, event] { placed.events.insert(placed.events.begin() + static_cast<ptrdiff_t>(at), event); };
       }},
      {"a step moves to a stream that there is not",
       [](Plan&, PlanPlacement& placed, Dice& dice) -> Undo {
         uint16_t* stream = any(placed.streams, dice);
         return stream == nullptr ? nullptr : change(*stream, static_cast<uint16_t>(placed.stream_count));
       }},
  };
  return kEdits;
}

TEST_CASE("plan property: wrong edits of plans of real graphs are refused", "[property]") {
  constexpr size_t kEdits = 1000;
  Dice dice(470);
  std::map<std::string, std::pair<size_t, size_t>> counts;  // tried, accepted
  size_t done = 0;
  for (size_t file = 0; done < kEdits; file = (file + 1) % kTwins.size()) {
    const std::unique_ptr<Module> module = load_testdata(kTwins[file]);
    prepare(*module);
    const std::unique_ptr<Plan> plan = lower_step(*module).value();
    std::vector<PlanPlacement> placements = placements_of(plan->view(), 2);
    for (size_t i = 0; i < 120 && done < kEdits; ++i) {
      const NamedEdit& named = wrong_edits()[roll(dice, wrong_edits().size())];
      PlanPlacement& placed = placements[roll(dice, placements.size())];
      const Undo undo = named.edit(*plan, placed, dice);
      if (undo == nullptr) continue;
      ++done;
      auto& [tried, accepted] = counts[named.name];
      ++tried;
      const FxPlan& view = plan->view();
      if (check_plan(view).empty() && check_placement(view, placed.view()).empty()) ++accepted;
      undo();
    }
  }
  for (const auto& [name, count] : counts) {
    std::printf("  %-45s %4zu tried, %zu accepted\n", name.c_str(), count.first, count.second);
    CAPTURE(name);
    CHECK(count.first > 5);
    CHECK(count.second == 0);
  }
}

}  // namespace
}  // namespace fxopt
