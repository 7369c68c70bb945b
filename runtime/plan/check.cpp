#include "runtime/plan/check.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "runtime/plan/check_structure.h"

namespace fxopt {
namespace plan_check {
namespace {

constexpr size_t kMaxGraphDepth = 64;

// Returns the bytes of one element. Returns 0 if the number of bytes is unknown or not whole.
// kSizes has the order of DType in schemas/fxgraph.proto.
int64_t element_size(FxDType dtype) {
  constexpr int8_t kSizes[] = {0, 1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 2, 2, 4, 8, 1, 1, 1, 1, 1, 0, 1, 1, 4, 1, 2};
  return dtype < std::size(kSizes) ? kSizes[dtype] : 0;
}

// Checks all rules except structure for one plan in which check_structure() has found no fault.
class Rules {
 public:
  Rules(const FxPlan& plan, Level level, FaultList& faults, PlanFacts& facts)
      : plan_(plan), level_(level), faults_(faults), facts_(facts), num_steps_(static_cast<uint32_t>(plan.num_steps)) {}

  void check() {
    facts_.maker.assign(plan_.num_storages, FX_NONE);
    facts_.last_wait.assign(plan_.num_steps, FX_NONE);
    is_freed_.assign(plan_.num_storages, false);
    is_written_.assign(plan_.num_storages, false);
    is_seen_.assign(plan_.num_tensors, false);
    is_produced_.assign(plan_.num_scalars, false);
    check_sources();
    check_scalars();
    check_extents();
    for (uint32_t i = 0; i < num_steps_ && !faults_.full(); ++i) check_step(i);
    check_produced();
    check_outputs();
    check_storages();
    check_exchanges();
  }

 private:
  bool full() const { return faults_.full(); }
  const FxStorage& storage(uint32_t index) const { return plan_.storages[index]; }
  bool is_empty(uint32_t index) const { return word_number(plan_, storage(index).bytes) == int64_t{0}; }

  // Checks the sources of storages. Finds the step before which the storage or scalar of each input
  // exists.
  void check_sources() {
    arrival_.assign(plan_.num_storages, FX_NONE);
    input_of_.assign(plan_.num_tensors, FX_NONE);
    scalar_arrival_.assign(plan_.num_scalars, FX_NONE);
    for (uint32_t i = 0; i < plan_.num_inputs; ++i) {
      const FxInput& input = plan_.inputs[i];
      const auto index = static_cast<uint32_t>(word_index(input.value));
      if (word_kind(input.value) == FX_WORD_SCALAR) {
        scalar_arrival_[index] = std::min(scalar_arrival_[index], input.first);
      }
      if (word_kind(input.value) != FX_WORD_TENSOR) continue;
      if (input_of_[index] == FX_NONE) input_of_[index] = i;
      const uint32_t owner = plan_.tensors[index].storage;
      if (owner == FX_NONE) continue;
      if (is_made(storage(owner))) {
        add(PlanFaultKind::kSource, {Part::kInput, i}, "is on " + named("storage", owner) + ", which a step makes",
            storage_at(owner));
        continue;
      }
      arrival_[owner] = std::min(arrival_[owner], input.first);
    }
    for (uint32_t i = 0; i < plan_.num_storages && !full(); ++i) {
      const uint8_t source = storage(i).source;
      if (source == FX_SOURCE_OUTER && level_ == Level::kTop) {
        add(PlanFaultKind::kSource, storage_at(i), "belongs to a caller, but nothing calls this plan");
      }
      if (source == FX_SOURCE_INPUT && level_ == Level::kCalled) {
        add(PlanFaultKind::kSource, storage_at(i),
            "belongs to an input, but in a called graph it must belong to the caller");
      }
      if (source == FX_SOURCE_CONSTANT) arrival_[i] = 0;
    }
  }

  void check_scalars() {
    for (uint32_t i = 0; i < plan_.num_scalars && !full(); ++i) {
      const FxScalar& scalar = plan_.scalars[i];
      const Subject subject = scalar_at(i);
      uint32_t latest = 0;  // largest legal value of `ready`
      uint32_t earliest = 0;
      switch (scalar.source) {
        case FX_SCALAR_DIM: {
          const uint32_t input = input_of_[scalar.tensor];
          if (input == FX_NONE) {
            add(PlanFaultKind::kScalarSource, subject, named("tensor", scalar.tensor) + " is not an input",
                tensor_at(scalar.tensor));
            continue;
          }
          latest = plan_.inputs[input].first;
          break;
        }
        case FX_SCALAR_INPUT:
          if (scalar_arrival_[i] == FX_NONE) {
            add(PlanFaultKind::kScalarSource, subject, "is not an input");
            continue;
          }
          latest = scalar_arrival_[i];
          break;
        case FX_SCALAR_CODE:
          for (uint32_t k = 0; k < scalar.num_code; ++k) {
            const FxCode& code = plan_.code[scalar.code + k];
            if (code.op != FX_CODE_PUSH || word_kind(code.push) != FX_WORD_SCALAR) continue;
            const auto operand = static_cast<uint32_t>(word_index(code.push));
            if (operand >= i) {
              add(PlanFaultKind::kScalarOrder, subject,
                  "its code pushes " + named("scalar", operand) + ", which is not listed before it");
              continue;
            }
            latest = std::max(latest, plan_.scalars[operand].ready);
          }
          earliest = latest;
          break;
        case FX_SCALAR_STEP:
          earliest = 1;
          latest = num_steps_;
          break;
        case FX_SCALAR_OUTER:
          if (level_ == Level::kTop) {
            add(PlanFaultKind::kScalarSource, subject, "belongs to a caller, but nothing calls this plan");
          }
          break;
        default:
          break;
      }
      if (scalar.ready < earliest || scalar.ready > latest) {
        add(PlanFaultKind::kScalarReady, subject,
            "`ready` is " + std::to_string(scalar.ready) + ", but its source allows " + std::to_string(earliest) +
                " to " + std::to_string(latest));
      }
    }
  }

  // Checks sizes, strides, offsets and bytes that are plain numbers.
  void check_extents() {
    for (uint32_t i = 0; i < plan_.num_storages && !full(); ++i) {
      const std::optional<int64_t> bytes = word_number(plan_, storage(i).bytes);
      if (bytes.has_value() && *bytes < 0) {
        add(PlanFaultKind::kNegative, storage_at(i), "has " + std::to_string(*bytes) + " bytes");
      }
    }
    for (uint32_t i = 0; i < plan_.num_tensors && !full(); ++i) check_extent(i);
  }

  void check_extent(uint32_t index) {
    const FxTensor& tensor = plan_.tensors[index];
    bool is_known = true;
    bool is_empty = false;
    bool is_negative = false;
    bool overflows = false;
    const auto number = [&](FxWord word) {
      const std::optional<int64_t> value = word_number(plan_, word);
      is_known &= value.has_value();
      is_negative |= value.value_or(0) < 0;
      return value.value_or(0);
    };
    int64_t end = number(tensor.offset);  // offset of the last element
    for (uint32_t dim = 0; dim < tensor.rank; ++dim) {
      const FxWord size_word = plan_.words[tensor.dims + dim];
      const int64_t size = number(size_word);
      const int64_t stride = number(plan_.words[tensor.dims + tensor.rank + dim]);
      if (is_negative) break;
      if (size == 0) {
        is_empty |= word_number(plan_, size_word).has_value();
        continue;
      }
      int64_t length = 0;
      overflows |= __builtin_mul_overflow(size - 1, stride, &length);
      overflows |= __builtin_add_overflow(end, length, &end);
    }
    if (is_negative) {
      add(PlanFaultKind::kNegative, tensor_at(index), "has a negative size, stride or offset");
      return;
    }
    const int64_t element = element_size(tensor.dtype);
    if (tensor.storage == FX_NONE || (tensor.flags & FX_TENSOR_UNKNOWN) != 0 || !is_known || is_empty || element == 0) {
      return;
    }
    int64_t bytes = 0;
    overflows |= __builtin_add_overflow(end, int64_t{1}, &end);
    overflows |= __builtin_mul_overflow(end, element, &bytes);
    const std::optional<int64_t> room = word_number(plan_, storage(tensor.storage).bytes);
    if (!overflows && (!room.has_value() || bytes <= *room)) return;
    add(PlanFaultKind::kOutsideStorage, tensor_at(index),
        "ends at byte " + (overflows ? std::string("2^63 or above") : std::to_string(bytes)) + " of " +
            named("storage", tensor.storage) +
            (room.has_value() ? ", which has " + std::to_string(*room) + " bytes" : std::string()),
        storage_at(tensor.storage));
  }

  void check_step(uint32_t index) {
    const FxStep& step = plan_.steps[index];
    for (size_t i = facts_.scalar_begin[index]; i < facts_.scalar_begin[index + 1] && !full(); ++i) {
      const uint32_t scalar = facts_.arg_scalars[i];
      if (plan_.scalars[scalar].ready > index) scalar_late(step_at(index), scalar);
    }
    for (size_t i = facts_.tensor_begin[index]; i < facts_.tensor_begin[index + 1] && !full(); ++i) {
      const uint32_t tensor = facts_.arg_tensors[i];
      check_sizes(index, tensor, index);
      if (plan_.tensors[tensor].storage != FX_NONE) check_use(index, plan_.tensors[tensor].storage, "reads");
    }
    for (uint32_t i = 0; i < step.num_writes && !full(); ++i) {
      const uint32_t written = plan_.indices[step.writes + i];
      is_written_[written] = true;
      check_use(index, written, "writes");
    }
    for (uint32_t i = 0; i < step.num_results && !full(); ++i) check_result(index, plan_.words[step.results + i]);
    for (uint32_t i = 0; i < step.num_frees && !full(); ++i) check_free(index, plan_.indices[step.frees + i]);
    for (uint32_t i = 0; i < step.num_after && !full(); ++i) {
      const uint32_t earlier = plan_.indices[step.after + i];
      if (earlier < index) continue;
      add(PlanFaultKind::kAfter, step_at(index), "must follow " + named("step", earlier) + ", which is not earlier");
    }
    check_flag(index, "FX_STEP_WRITES", (step.flags & FX_STEP_WRITES) != 0, "`writes`", step.num_writes > 0);
    check_flag(index, "FX_STEP_DRAWS", (step.flags & FX_STEP_DRAWS) != 0, "`draw`", step.draw != FX_NONE);
    check_flag(index, "FX_STEP_TRANSFERS", (step.flags & FX_STEP_TRANSFERS) != 0, "storages of two devices",
               uses_two_devices(index));
    if (step.kind == FX_STEP_WAIT && step.other != FX_NONE) {
      if (step.other >= index || !is_exchange(plan_.steps[step.other])) {
        add(PlanFaultKind::kWait, step_at(index),
            "waits for " + named("step", step.other) + ", which is not an earlier collective or message");
      } else {
        facts_.last_wait[step.other] = index;
      }
    }
  }

  // A storage without a recorded device may be on any device.
  bool uses_two_devices(uint32_t index) const {
    const FxStep& step = plan_.steps[index];
    uint32_t first = FX_NONE;
    bool differs = false;
    const auto see = [&](uint32_t used) {
      if (used == FX_NONE || storage(used).device == FX_NONE) return;
      if (first == FX_NONE) first = storage(used).device;
      differs |= !is_same_device(plan_, storage(used).device, first);
    };
    for (size_t i = facts_.tensor_begin[index]; i < facts_.tensor_begin[index + 1]; ++i)
      see(plan_.tensors[facts_.arg_tensors[i]].storage);
    for (uint32_t i = 0; i < step.num_writes; ++i) see(plan_.indices[step.writes + i]);
    for (uint32_t i = 0; i < step.num_results; ++i) {
      const FxWord word = plan_.words[step.results + i];
      if (word_kind(word) == FX_WORD_TENSOR) see(plan_.tensors[word_index(word)].storage);
    }
    return differs;
  }

  void check_flag(uint32_t step, const char* flag, bool is_set, const char* field, bool has) {
    if (is_set == has) return;
    add(PlanFaultKind::kFlags, step_at(step),
        std::string("has ") + (is_set ? flag : field) + " without " + (is_set ? field : flag));
  }

  void scalar_late(Subject subject, uint32_t scalar) {
    add(PlanFaultKind::kScalarLate, subject,
        "needs " + named("scalar", scalar) + ", which is known after " +
            named("step", uint64_t{plan_.scalars[scalar].ready} - 1),
        scalar_at(scalar));
  }

  // Checks that sizes, strides and offset of the tensor are known after `known` steps.
  void check_sizes(uint32_t step, uint32_t tensor, uint32_t known) {
    if (facts_.tensor_ready[tensor] <= known) return;
    add(PlanFaultKind::kScalarLate, step_at(step),
        named("tensor", tensor) + " has a size, stride or offset that is known only after " +
            named("step", uint64_t{facts_.tensor_ready[tensor]} - 1),
        tensor_at(tensor));
  }

  // Checks a use of a storage that must exist before the step.
  void check_use(uint32_t step, uint32_t index, const char* verb) {
    const FxStorage& used = storage(index);
    const auto message = [&] { return std::string(verb) + " " + named("storage", index); };
    if (is_made(used) && facts_.maker[index] == FX_NONE) {
      add(PlanFaultKind::kUnmade, step_at(step), message() + " before a step makes it", storage_at(index));
      return;
    }
    if (!is_made(used) && (arrival_[index] == FX_NONE || arrival_[index] > step)) {
      add(PlanFaultKind::kUnmade, step_at(step),
          message() + (arrival_[index] == FX_NONE ? ", which belongs to no input" : " before its input arrives"),
          storage_at(index));
      return;
    }
    check_alive(step, index, verb);
  }

  void check_alive(uint32_t step, uint32_t index, const char* verb) {
    const FxStorage& used = storage(index);
    if (used.first == FX_NONE) {
      if (!is_made(used) || is_empty(index)) return;
      add(PlanFaultKind::kLifetime, step_at(step),
          std::string(verb) + " " + named("storage", index) + ", which is never allocated", storage_at(index));
      return;
    }
    if (used.first <= step && step <= used.last) return;
    add(PlanFaultKind::kLifetime, step_at(step),
        std::string(verb) + " " + named("storage", index) + ", which is alive in steps " + std::to_string(used.first) +
            " to " + std::to_string(used.last),
        storage_at(index));
  }

  void check_result(uint32_t step, FxWord word) {
    const auto index = static_cast<uint32_t>(word_index(word));
    if (word_kind(word) == FX_WORD_SCALAR) {
      const FxScalar& scalar = plan_.scalars[index];
      if (scalar.source == FX_SCALAR_STEP && scalar.ready == step + 1) {
        is_produced_[index] = true;
      } else if (scalar.source == FX_SCALAR_STEP || scalar.ready > step + 1) {
        add(PlanFaultKind::kScalarReady, step_at(step),
            "computes " + named("scalar", index) + ", but this scalar is ready after " + std::to_string(scalar.ready) +
                " steps",
            scalar_at(index));
      }
    }
    if (word_kind(word) != FX_WORD_TENSOR) return;
    const FxTensor& tensor = plan_.tensors[index];
    check_sizes(step, index, step + 1);
    if (!is_seen_[index]) {
      // A later step with the same result produces no new scalar, because the scalars are ready
      // before this step.
      is_seen_[index] = true;
      produce(step, tensor.offset);
      for (uint32_t dim = 0; dim < 2u * tensor.rank; ++dim) produce(step, plan_.words[tensor.dims + dim]);
    }
    if (tensor.storage == FX_NONE) return;
    if (!is_made(storage(tensor.storage)) || facts_.maker[tensor.storage] != FX_NONE) {
      if (facts_.maker[tensor.storage] == step) return;
      check_use(step, tensor.storage, "has a result in");
      return;
    }
    facts_.maker[tensor.storage] = step;
    check_alive(step, tensor.storage, "makes");
  }

  void produce(uint32_t step, FxWord word) {
    if (word_kind(word) == FX_WORD_SCALAR && plan_.scalars[word_index(word)].ready == step + 1) {
      is_produced_[word_index(word)] = true;
    }
  }

  void check_free(uint32_t step, uint32_t index) {
    const FxStorage& freed = storage(index);
    const char* reason = nullptr;
    if (!is_made(freed)) {
      reason = ", which no step makes";
    } else if ((freed.flags & FX_STORAGE_RETURNED) != 0) {
      reason = ", which is returned";
    } else if (freed.first == FX_NONE) {
      reason = ", which is never allocated";
    } else if (is_freed_[index]) {
      reason = " a second time";
    } else if (freed.last != step) {
      reason = ", but another step is its last";
    }
    is_freed_[index] = true;
    if (reason == nullptr) return;
    add(PlanFaultKind::kFree, step_at(step), "frees " + named("storage", index) + reason, storage_at(index));
  }

  void check_produced() {
    for (uint32_t i = 0; i < plan_.num_scalars && !full(); ++i) {
      if (plan_.scalars[i].source != FX_SCALAR_STEP || is_produced_[i] || plan_.scalars[i].ready == 0) continue;
      add(PlanFaultKind::kScalarUnmade, scalar_at(i),
          named("step", plan_.scalars[i].ready - 1) + " produces neither this scalar nor a tensor of this size",
          step_at(plan_.scalars[i].ready - 1));
    }
  }

  void check_outputs() {
    is_output_.assign(plan_.num_storages, false);  // by alias class
    for (const auto& [output, tensor] : facts_.output_tensors) {
      if (full()) return;
      const Subject subject{Part::kOutput, output};
      const uint32_t owner = plan_.tensors[tensor].storage;
      if (owner == FX_NONE) continue;
      is_output_[storage(owner).alias_class] = true;
      if (!is_made(storage(owner))) {
        if (arrival_[owner] == FX_NONE) {
          add(PlanFaultKind::kUnmade, subject, "is on " + named("storage", owner) + ", which belongs to no input",
              storage_at(owner));
        }
        continue;
      }
      if (facts_.maker[owner] == FX_NONE) {
        add(PlanFaultKind::kUnmade, subject, "is on " + named("storage", owner) + ", which no step makes",
            storage_at(owner));
      } else if ((storage(owner).flags & FX_STORAGE_RETURNED) == 0) {
        add(PlanFaultKind::kReturned, subject, "is on " + named("storage", owner) + ", which lacks FX_STORAGE_RETURNED",
            storage_at(owner));
      }
    }
    for (uint32_t i = 0; i < plan_.num_outputs && !full(); ++i) check_output(i);
  }

  void check_output(uint32_t index) {
    const FxOutput& output = plan_.outputs[index];
    const Subject subject{Part::kOutput, index};
    if (output.is_input != FX_NONE && plan_.inputs[output.is_input].value != output.value) {
      add(PlanFaultKind::kSharedTensor, subject, "is not the value of " + named("input", output.is_input));
    }
    if (word_kind(output.value) != FX_WORD_TENSOR || output.is_input != FX_NONE) return;
    const uint32_t input = input_of_[word_index(output.value)];
    if (input == FX_NONE) return;
    add(PlanFaultKind::kSharedTensor, subject,
        "is the tensor of " + named("input", input) + ", but `is_input` is FX_NONE",
        tensor_at(word_index(output.value)));
  }

  void check_storages() {
    for (uint32_t i = 0; i < plan_.num_storages && !full(); ++i) {
      const FxStorage& checked = storage(i);
      const Subject subject = storage_at(i);
      if (((checked.flags & FX_STORAGE_WRITTEN) != 0) != is_written_[i]) {
        add(PlanFaultKind::kFlags, subject,
            is_written_[i] ? "lacks FX_STORAGE_WRITTEN, but a step writes it"
                           : "has FX_STORAGE_WRITTEN, but no step writes it");
      }
      const bool is_returned = (checked.flags & FX_STORAGE_RETURNED) != 0;
      if (is_returned && !is_output_[checked.alias_class]) {
        add(PlanFaultKind::kReturned, subject, "has FX_STORAGE_RETURNED, but no output uses it");
      }
      check_bytes(i);
      if (!is_made(checked) || checked.first == FX_NONE) continue;
      if (facts_.maker[i] == FX_NONE) {
        add(PlanFaultKind::kLifetime, subject, "has a lifetime, but no step makes it");
      }
      if (is_returned && checked.last + 1 != num_steps_) {
        add(PlanFaultKind::kLifetime, subject, "is returned, but ends after " + named("step", checked.last));
      }
      if (!is_returned && !is_freed_[i]) {
        add(PlanFaultKind::kNotFreed, subject, "is neither freed nor returned");
      }
    }
  }

  void check_bytes(uint32_t index) {
    const FxStorage& checked = storage(index);
    const bool follows = (checked.flags & FX_STORAGE_FOLLOWS) != 0;
    const uint32_t ready =
        word_kind(checked.bytes) == FX_WORD_SCALAR ? plan_.scalars[word_index(checked.bytes)].ready : 0;
    if (checked.source == FX_SOURCE_PLANNED && (follows || ready > 0)) {
      add(PlanFaultKind::kBytesLate, storage_at(index), "is planned, but its size is not known before the first step");
    }
    if (checked.source != FX_SOURCE_LATE || follows) return;
    if (ready == 0) {
      add(PlanFaultKind::kBytesLate, storage_at(index), "is late, but its size is known before the first step");
    } else if (facts_.maker[index] != FX_NONE && ready > facts_.maker[index] + 1) {
      add(PlanFaultKind::kBytesLate, storage_at(index),
          named("step", facts_.maker[index]) + " makes it, but its size is known only after " +
              named("step", ready - 1),
          step_at(facts_.maker[index]));
    }
  }

  // Checks the buffers of collectives and messages from the start to the wait. Checks sequence
  // numbers.
  void check_exchanges() {
    std::vector<uint32_t> written(plan_.num_storages, FX_NONE);
    // the exchange that writes the storage
    std::vector<uint32_t> writer(plan_.num_storages, FX_NONE);
    std::vector<uint32_t> readers(plan_.num_storages, 0);        // number of exchanges that read it
    std::vector<uint32_t> reader(plan_.num_storages, FX_NONE);   // the latest such exchange
    std::vector<uint32_t> sequence(plan_.num_groups, 0);         // the next number of each group
    std::vector<uint32_t> counted(plan_.num_storages, FX_NONE);  // the step that last counted it
    for (uint32_t i = 0; i < num_steps_ && !full(); ++i) {
      const FxStep& step = plan_.steps[i];
      if (is_end_of_exchange(i)) {
        for (size_t k = facts_.tensor_begin[i]; k < facts_.tensor_begin[i + 1]; ++k) {
          const uint32_t waited = plan_.tensors[facts_.arg_tensors[k]].storage;
          if (waited != FX_NONE && writer[waited] == step.other) writer[waited] = FX_NONE;
        }
        if (facts_.last_wait[step.other] == i) {
          for_each_access(plan_, facts_, step.other, written, [&](uint32_t used, Access access) {
            const bool is_written = access == Access::kWrite || access == Access::kMake;
            if (is_written ? writer[used] != step.other : counted[used] == i) return;
            counted[used] = i;
            if (is_written) writer[used] = FX_NONE;
            if (access == Access::kRead && readers[used] > 0) --readers[used];
            check_end_of_buffer(step.other, used, i);
          });
        }
      }
      for_each_access(plan_, facts_, i, written, [&](uint32_t used, Access access) {
        if (access == Access::kAlias || access == Access::kMake) return;
        if (writer[used] != FX_NONE) {
          busy(i, used, access, writer[used], "writes");
        } else if (access == Access::kWrite && readers[used] > 0) {
          busy(i, used, access, reader[used], "reads");
        }
      });
      if (!is_exchange(step)) continue;
      for_each_access(plan_, facts_, i, written, [&](uint32_t used, Access access) {
        if (counted[used] == i) return;
        counted[used] = i;
        if (access == Access::kRead) {
          ++readers[used];
          reader[used] = i;
        } else if (access != Access::kAlias) {
          writer[used] = i;
        }
        if (facts_.last_wait[i] == FX_NONE) check_end_of_buffer(i, used, FX_NONE);
      });
      if (step.kind != FX_STEP_COLLECTIVE) continue;
      if (step.sequence != sequence[step.group]) {
        add(PlanFaultKind::kSequence, step_at(i),
            "is number " + std::to_string(step.sequence) + " of " + named("group", step.group) + ", not " +
                std::to_string(sequence[step.group]));
      }
      ++sequence[step.group];
    }
  }

  // Checks that a buffer lives until the last wait for the collective or message that uses the
  // buffer. If no step waits, the buffer must live until the last step.
  void check_end_of_buffer(uint32_t exchange, uint32_t used, uint32_t wait) {
    const FxStorage& buffer = storage(used);
    const uint32_t end = wait == FX_NONE ? num_steps_ - 1 : wait;
    if (!is_made(buffer) || buffer.first == FX_NONE || buffer.last >= end) return;
    add(PlanFaultKind::kEndsInExchange, step_at(exchange),
        named("storage", used) + " ends after " + named("step", buffer.last) + ", but the exchange ends " +
            (wait == FX_NONE ? std::string("with the plan, as no step waits for it") : "in " + named("step", wait)),
        storage_at(used));
  }

  bool is_end_of_exchange(uint32_t index) const {
    const FxStep& step = plan_.steps[index];
    return step.kind == FX_STEP_WAIT && step.other < index && is_exchange(plan_.steps[step.other]);
  }

  void busy(uint32_t step, uint32_t used, Access access, uint32_t exchange, const char* verb) {
    add(PlanFaultKind::kBusy, step_at(step),
        std::string(access == Access::kWrite ? "writes " : "reads ") + named("storage", used) +
            " while the exchange of " + named("step", exchange) + " " + verb + " it",
        storage_at(used));
  }

  void add(PlanFaultKind kind, Subject subject, const std::string& message, Subject other = {}) {
    faults_.add(kind, subject, message, other);
  }

  const FxPlan& plan_;
  const Level level_;
  FaultList& faults_;
  PlanFacts& facts_;
  const uint32_t num_steps_;
  // by storage: if no step makes it, the first step that may use it; otherwise FX_NONE
  std::vector<uint32_t> arrival_;
  std::vector<uint32_t> input_of_;                       // by tensor: its first input
  std::vector<uint32_t> scalar_arrival_;                 // by scalar: like arrival_, for inputs
  std::vector<bool> is_freed_, is_written_, is_output_;  // by storage
  std::vector<bool> is_seen_;                            // by tensor: a step has it as a result
  std::vector<bool> is_produced_;                        // by scalar
};

class Graphs {
 public:
  explicit Graphs(FaultList& faults) : faults_(faults) {}

  // Returns the nesting depth of the plan, which is 1 if the plan calls no graph.
  size_t check(const FxPlan& plan, Level level, PlanFacts& facts) {
    size_t height = 1;
    open_.push_back(&plan);
    if (check_structure(plan, faults_, facts)) Rules(plan, level, faults_, facts).check();
    const bool has_graphs = plan.version == FX_PLAN_VERSION && plan.size == sizeof(FxPlan) && plan.graphs != nullptr &&
                            plan.num_graphs < FX_NONE;
    for (uint32_t i = 0; has_graphs && i < plan.num_graphs && !faults_.full(); ++i) {
      const FxPlan* graph = plan.graphs[i];
      const std::string name = named("graph", i);
      if (graph == nullptr) {
        faults_.add(PlanFaultKind::kBadArray, {}, name + " is a null pointer");
      } else if (std::find(open_.begin(), open_.end(), graph) != open_.end()) {
        faults_.add(PlanFaultKind::kBadGraph, {}, name + " contains itself");
      } else {
        const auto known = heights_.find(graph);
        size_t below = known == heights_.end() ? 1 : known->second;
        if (open_.size() + below > kMaxGraphDepth) {
          faults_.add(PlanFaultKind::kBadGraph, {}, name + " is nested more than 64 deep");
        } else if (known == heights_.end()) {
          faults_.enter(i);
          PlanFacts of_graph;
          below = check(*graph, Level::kCalled, of_graph);
          faults_.leave();
        }
        height = std::max(height, below + 1);
      }
    }
    open_.pop_back();
    heights_[&plan] = height;
    return height;
  }

 private:
  FaultList& faults_;
  std::map<const FxPlan*, size_t> heights_;  // by plan, for checked plans
  std::vector<const FxPlan*> open_;
};

}  // namespace

bool check_graphs(const FxPlan& plan, Level level, FaultList& faults, PlanFacts& facts) {
  const size_t before = faults.size();
  Graphs(faults).check(plan, level, facts);
  return faults.size() == before;
}

}  // namespace plan_check

std::string_view plan_fault_name(PlanFaultKind kind) {
  constexpr std::array<std::string_view, kNumPlanFaultKinds> kNames = {"bad-version",
                                                                       "bad-array",
                                                                       "bad-index",
                                                                       "bad-value",
                                                                       "bad-list",
                                                                       "bad-graph",
                                                                       "bad-code",
                                                                       "too-large",
                                                                       "scalar-order",
                                                                       "scalar-ready",
                                                                       "scalar-source",
                                                                       "scalar-unmade",
                                                                       "scalar-late",
                                                                       "unmade",
                                                                       "lifetime",
                                                                       "free",
                                                                       "not-freed",
                                                                       "returned",
                                                                       "flags",
                                                                       "source",
                                                                       "bytes-late",
                                                                       "negative",
                                                                       "outside-storage",
                                                                       "wait",
                                                                       "busy",
                                                                       "ends-in-exchange",
                                                                       "sequence",
                                                                       "shared-tensor",
                                                                       "after",
                                                                       "faulty-plan",
                                                                       "placement-size",
                                                                       "stream",
                                                                       "event",
                                                                       "block",
                                                                       "block-small",
                                                                       "blocks-overlap",
                                                                       "workspace-overlap",
                                                                       "unordered",
                                                                       "lower-bound"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<PlanFault> check_plan(const FxPlan& plan) {
  plan_check::FaultList faults;
  plan_check::PlanFacts facts;
  plan_check::check_graphs(plan, plan_check::Level::kTop, faults, facts);
  return faults.take();
}

}  // namespace fxopt
