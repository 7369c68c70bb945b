#include "runtime/plan/check_structure.h"

#include <algorithm>
#include <array>

namespace fxopt::plan_check {
namespace {

constexpr unsigned kMaxDepth = 64;
// The last enumerators of schemas/fxgraph.proto.
constexpr uint64_t kLastDType = 27;
constexpr uint64_t kLastLayout = 7;
constexpr uint64_t kLastFormat = 3;
constexpr uint32_t kLastInputRole = 13;
constexpr uint32_t kLastOutputRole = 9;

constexpr const char* kPartNames[] = {"plan", "step",  "storage", "tensor", "scalar", "input", "output",
                                      "draw", "group", "op",      "node",   "string", "event"};

// Returns the number of operands of a code operator.
int arity(uint32_t op) {
  if (op == FX_CODE_PUSH) return 0;
  if (op == FX_CODE_WHERE || op == FX_CODE_INDEXING) return 3;
  return op == FX_CODE_NEG || op == FX_CODE_ABS || op == FX_CODE_NOT || op == FX_CODE_POW2FLOOR ? 1 : 2;
}

// Returns true for the kinds of recorded numbers.
bool is_number(uint64_t kind) {
  return kind == FX_WORD_INT || kind == FX_WORD_NUMBER || kind == FX_WORD_DOUBLE || kind == FX_WORD_BOOL;
}

class Structure {
 public:
  Structure(const FxPlan& plan, FaultList& faults, PlanFacts& facts)
      : plan_(plan), faults_(faults), facts_(facts), before_(faults.size()) {}

  bool check() {
    if (!check_header()) return false;
    budget_ = (uint64_t{1} << 24) + 8 * (plan_.num_words + plan_.num_indices + plan_.num_code);
    lists_.assign(plan_.num_words, kUnseen);
    check_names();
    check_scalars();
    check_storages();
    check_tensors();
    check_inputs();
    if (good()) check_steps();
    if (good()) check_outputs();
    return good();
  }

 private:
  // States of the list that begins at a word. Any other value is the nesting depth of the list,
  // from 1.
  static constexpr uint8_t kUnseen = 0;
  static constexpr uint8_t kFaulty = 254;
  static constexpr uint8_t kOpen = 255;

  bool good() const { return faults_.size() == before_; }
  bool full() const { return faults_.full(); }
  void bad_value(Subject subject, const std::string& message) {
    faults_.add(PlanFaultKind::kBadValue, subject, message);
  }

  bool check_header() {
    if (plan_.version != FX_PLAN_VERSION || plan_.size != sizeof(FxPlan)) {
      faults_.add(PlanFaultKind::kBadVersion, {},
                  "version " + std::to_string(plan_.version) + " with " + std::to_string(plan_.size) +
                      " bytes; this checker expects version " + std::to_string(FX_PLAN_VERSION) + " with " +
                      std::to_string(sizeof(FxPlan)));
      return false;
    }
    check_array(plan_.steps, plan_.num_steps, "steps");
    check_array(plan_.storages, plan_.num_storages, "storages");
    check_array(plan_.tensors, plan_.num_tensors, "tensors");
    check_array(plan_.words, plan_.num_words, "words");
    check_array(plan_.indices, plan_.num_indices, "indices");
    check_array(plan_.numbers, plan_.num_numbers, "numbers");
    check_array(plan_.scalars, plan_.num_scalars, "scalars");
    check_array(plan_.code, plan_.num_code, "code");
    check_array(plan_.inputs, plan_.num_inputs, "inputs");
    check_array(plan_.outputs, plan_.num_outputs, "outputs");
    check_array(plan_.draws, plan_.num_draws, "draws");
    check_array(plan_.groups, plan_.num_groups, "groups");
    check_array(plan_.ops, plan_.num_ops, "ops");
    check_array(plan_.nodes, plan_.num_nodes, "nodes");
    check_array(plan_.strings, plan_.num_strings, "strings");
    check_array(plan_.graphs, plan_.num_graphs, "graphs");
    return good();
  }

  void check_array(const void* data, uint64_t count, const char* name) {
    if (count >= FX_NONE) {
      faults_.add(PlanFaultKind::kBadArray, {}, std::to_string(count) + " " + name + "; indices have 32 bits");
    } else if (data == nullptr && count > 0) {
      faults_.add(PlanFaultKind::kBadArray, {}, std::to_string(count) + " " + name + " at a null pointer");
    }
  }

  bool check_index(Subject subject, const char* field, uint64_t index, uint64_t count, const char* array) {
    if (index < count) return true;
    faults_.add(
        PlanFaultKind::kBadIndex, subject,
        std::string(field) + " is " + std::to_string(index) + ", but there are " + std::to_string(count) + " " + array);
    return false;
  }
  // Like check_index(), but FX_NONE is legal.
  bool check_optional(Subject subject, const char* field, uint32_t index, uint64_t count, const char* array) {
    return index == FX_NONE || check_index(subject, field, index, count, array);
  }
  bool check_span(Subject subject, const char* field, uint64_t first, uint64_t num, uint64_t count, const char* array) {
    if (num == 0 || (first <= count && num <= count - first)) return true;
    faults_.add(PlanFaultKind::kBadIndex, subject,
                std::string(field) + " spans " + std::to_string(num) + " entries from " + std::to_string(first) +
                    ", but there are " + std::to_string(count) + " " + array);
    return false;
  }
  void check_name(Subject subject, const char* field, uint32_t index) {
    check_optional(subject, field, index, plan_.num_strings, "strings");
  }

  // Takes `amount` from the budget of words. Returns false if the budget is exhausted.
  bool charge(uint64_t amount) {
    if (amount <= budget_) {
      budget_ -= amount;
      return true;
    }
    if (!too_large_) {
      faults_.add(PlanFaultKind::kTooLarge, {},
                  "lists and spans overlap so often that a walk over the plan would take too long");
    }
    too_large_ = true;
    budget_ = 0;
    return false;
  }

  // Checks a word of any kind, and the entry to which the word refers.
  bool check_word(Subject subject, const char* field, FxWord word, unsigned depth = 0) {
    const uint64_t index = word_index(word);
    switch (word_kind(word)) {
      case FX_WORD_NONE:
      case FX_WORD_INT:
        return true;
      case FX_WORD_NUMBER:
      case FX_WORD_DOUBLE:
        return check_index(subject, field, index, plan_.num_numbers, "numbers");
      case FX_WORD_COMPLEX:
        return check_index(subject, field, index, plan_.num_numbers == 0 ? 0 : plan_.num_numbers - 1,
                           "pairs of numbers");
      case FX_WORD_BOOL:
        return check_enumerator(subject, field, index, 1, "Boolean");
      case FX_WORD_SCALAR:
        return check_index(subject, field, index, plan_.num_scalars, "scalars");
      case FX_WORD_TENSOR:
        return check_index(subject, field, index, plan_.num_tensors, "tensors");
      case FX_WORD_LIST:
        return check_list(subject, field, index, depth) != kFaulty;
      case FX_WORD_STRING:
      case FX_WORD_DEVICE:
        return check_index(subject, field, index, plan_.num_strings, "strings");
      case FX_WORD_DTYPE:
        return check_enumerator(subject, field, index, kLastDType, "element type");
      case FX_WORD_LAYOUT:
        return check_enumerator(subject, field, index, kLastLayout, "layout");
      case FX_WORD_FORMAT:
        return check_enumerator(subject, field, index, kLastFormat, "memory format");
      case FX_WORD_GRAPH:
        return check_index(subject, field, index, plan_.num_graphs, "graphs");
      case FX_WORD_GROUP:
        return check_index(subject, field, index, plan_.num_groups, "groups");
      default:
        bad_value(subject, std::string(field) + " is a word of unknown kind " + std::to_string(word_kind(word)));
        return false;
    }
  }

  bool check_enumerator(Subject subject, const char* field, uint64_t value, uint64_t last, const char* what) {
    if (value <= last) return true;
    bad_value(subject, std::string(field) + " is " + std::to_string(value) + ", which is not a legal " + what);
    return false;
  }

  // Returns the nesting depth of the list, or kFaulty. Each list is visited once.
  uint8_t check_list(Subject subject, const char* field, uint64_t header, unsigned depth) {
    if (!check_index(subject, field, header, plan_.num_words, "words")) return kFaulty;
    uint8_t& state = lists_[header];
    if (state == kFaulty) return kFaulty;
    const bool is_deep = state == kUnseen ? depth >= kMaxDepth : state != kOpen && depth + state > kMaxDepth;
    if (state == kOpen || is_deep) {
      faults_.add(PlanFaultKind::kBadList, subject,
                  std::string(field) + " has a list at word " + std::to_string(header) +
                      (is_deep ? " that is nested more than 64 deep" : " that contains itself"));
      return kFaulty;
    }
    if (state != kUnseen) return state;
    state = kFaulty;
    if (word_kind(plan_.words[header]) != FX_WORD_INT) {
      bad_value(subject, std::string(field) + " has a list at word " + std::to_string(header) + " without a count");
      return kFaulty;
    }
    const uint64_t count = word_index(plan_.words[header]);
    if (!check_span(subject, field, header + 1, count, plan_.num_words, "words")) return kFaulty;
    if (!charge(count + 1)) return kFaulty;
    state = kOpen;
    unsigned height = 1;
    bool is_good = true;
    for (uint64_t i = 0; i < count && !full(); ++i) {
      const FxWord word = plan_.words[header + 1 + i];
      if (!check_word(subject, field, word, depth + 1)) {
        is_good = false;
      } else if (word_kind(word) == FX_WORD_LIST) {
        height = std::max(height, lists_[word_index(word)] + 1u);
      }
    }
    state = is_good ? static_cast<uint8_t>(height) : kFaulty;
    return state;
  }

  // Calls see() for a valid word, or for each element of a list. The recursion is as deep as the
  // lists are nested.
  template <class See>
  void walk(FxWord word, const See& see) {
    if (word_kind(word) != FX_WORD_LIST) return see(word);
    const uint64_t header = word_index(word);
    const uint64_t count = word_index(plan_.words[header]);
    if (!charge(count + 1)) return;
    for (uint64_t i = 0; i < count && !too_large_; ++i) walk(plan_.words[header + 1 + i], see);
  }

  void check_names() {
    check_name({}, "name", plan_.name);
    for (uint64_t i = 0; i < plan_.num_strings; ++i) {
      if (plan_.strings[i].data == nullptr && plan_.strings[i].size > 0) {
        faults_.add(PlanFaultKind::kBadArray, {Part::kString, i}, "its characters are at a null pointer");
      }
    }
    for (uint64_t i = 0; i < plan_.num_nodes && !full(); ++i) {
      const FxNode& node = plan_.nodes[i];
      check_name({Part::kNode, i}, "name", node.name);
      check_name({Part::kNode, i}, "module", node.module);
      check_name({Part::kNode, i}, "file", node.file);
    }
    for (uint64_t i = 0; i < plan_.num_ops && !full(); ++i) {
      check_index({Part::kOp, i}, "name", plan_.ops[i].name, plan_.num_strings, "strings");
    }
    for (uint64_t i = 0; i < plan_.num_draws && !full(); ++i) check_name({Part::kDraw, i}, "slot", plan_.draws[i].slot);
    for (uint64_t i = 0; i < plan_.num_groups && !full(); ++i) {
      const FxGroup& group = plan_.groups[i];
      const Subject subject{Part::kGroup, i};
      check_name(subject, "name", group.name);
      check_span(subject, "ranks", group.ranks, group.num_ranks, plan_.num_indices, "indices");
      const uint64_t kind = word_kind(group.choice);
      if (kind != FX_WORD_NONE && kind != FX_WORD_SCALAR) bad_value(subject, "choice is not a scalar");
      if (kind == FX_WORD_NONE && group.name == FX_NONE) bad_value(subject, "has neither a name nor a choice");
      check_word(subject, "choice", group.choice);
    }
  }

  void check_scalars() {
    for (uint64_t i = 0; i < plan_.num_scalars && !full(); ++i) {
      const FxScalar& scalar = plan_.scalars[i];
      const Subject subject = scalar_at(i);
      check_name(subject, "name", scalar.name);
      check_enumerator(subject, "source", scalar.source, FX_SCALAR_RANK, "source");
      check_enumerator(subject, "type", scalar.type, FX_SCALAR_BOOL, "type");
      if (scalar.ready > plan_.num_steps) {
        bad_value(subject, "is ready after " + std::to_string(scalar.ready) + " steps, but there are " +
                               std::to_string(plan_.num_steps));
      }
      if (scalar.name != FX_NONE && scalar.min > scalar.max) bad_value(subject, "its minimum is above its maximum");
      if (scalar.source == FX_SCALAR_CODE) check_code(i);
      if (scalar.source == FX_SCALAR_DIM &&
          check_index(subject, "tensor", scalar.tensor, plan_.num_tensors, "tensors")) {
        check_index(subject, "dim", scalar.dim, 2u * plan_.tensors[scalar.tensor].rank + 1,
                    "sizes, strides and offsets");
      }
    }
  }

  void check_code(uint64_t index) {
    const FxScalar& scalar = plan_.scalars[index];
    const Subject subject = scalar_at(index);
    if (!check_span(subject, "code", scalar.code, scalar.num_code, plan_.num_code, "entries of code")) return;
    if (!charge(scalar.num_code)) return;
    int64_t depth = 0;
    for (uint32_t i = 0; i < scalar.num_code; ++i) {
      const FxCode& code = plan_.code[scalar.code + i];
      if (!check_enumerator(subject, "code", code.op, FX_NUM_CODE_OPS - 1, "operator")) return;
      if (code.op == FX_CODE_PUSH) {
        const uint64_t kind = word_kind(code.push);
        if (!is_number(kind) && kind != FX_WORD_SCALAR) {
          bad_value(subject, "code pushes a word that is not a number");
          return;
        }
        if (!check_word(subject, "code", code.push)) return;
      }
      depth -= arity(code.op);
      if (depth < 0) {
        faults_.add(PlanFaultKind::kBadCode, subject,
                    "operator " + std::to_string(i) + " takes more operands than the stack has");
        return;
      }
      ++depth;
    }
    if (depth != 1) {
      faults_.add(PlanFaultKind::kBadCode, subject, "its code leaves " + std::to_string(depth) + " values, not one");
    }
  }

  // Checks a word that must be an integer or an integer scalar. NONE is legal if `may_be_none` is
  // true.
  bool check_amount(Subject subject, const char* field, FxWord word, bool may_be_none) {
    const uint64_t kind = word_kind(word);
    if (kind == FX_WORD_NONE && may_be_none) return true;
    if (kind != FX_WORD_INT && kind != FX_WORD_NUMBER && kind != FX_WORD_SCALAR) {
      bad_value(subject, std::string(field) + " is not an integer");
      return false;
    }
    if (!check_word(subject, field, word)) return false;
    if (kind == FX_WORD_SCALAR && plan_.scalars[word_index(word)].type != FX_SCALAR_INT) {
      bad_value(subject, std::string(field) + " is scalar " + std::to_string(word_index(word)) + ", not an integer");
      return false;
    }
    return true;
  }

  void check_storages() {
    for (uint64_t i = 0; i < plan_.num_storages && !full(); ++i) {
      const FxStorage& storage = plan_.storages[i];
      const Subject subject = storage_at(i);
      check_enumerator(subject, "source", storage.source, FX_SOURCE_OUTER, "source");
      check_enumerator(subject, "role", storage.role, FX_ROLE_WORKSPACE, "role");
      check_enumerator(subject, "flags", storage.flags, FX_STORAGE_WRITTEN | FX_STORAGE_RETURNED | FX_STORAGE_FOLLOWS,
                       "set of flags");
      check_name(subject, "device", storage.device);
      check_optional(subject, "node", storage.node, plan_.num_nodes, "nodes");
      const bool follows = (storage.flags & FX_STORAGE_FOLLOWS) != 0;
      if (follows && word_kind(storage.bytes) != FX_WORD_NONE) bad_value(subject, "has FX_STORAGE_FOLLOWS and a size");
      check_amount(subject, "bytes", storage.bytes, follows);
      if (storage.alias_class > i || plan_.storages[storage.alias_class].alias_class != storage.alias_class) {
        bad_value(subject, "alias_class " + std::to_string(storage.alias_class) + " is not the smallest of its class");
      }
      if (storage.first == FX_NONE) continue;
      if (storage.first > storage.last || storage.last >= plan_.num_steps) {
        bad_value(subject, "is alive in steps " + std::to_string(storage.first) + " to " +
                               std::to_string(storage.last) + " of " + std::to_string(plan_.num_steps));
      }
    }
  }

  void check_tensors() {
    facts_.tensor_ready.assign(plan_.num_tensors, 0);
    for (uint64_t i = 0; i < plan_.num_tensors && !full(); ++i) {
      const FxTensor& tensor = plan_.tensors[i];
      const Subject subject = tensor_at(i);
      check_optional(subject, "storage", tensor.storage, plan_.num_storages, "storages");
      check_optional(subject, "node", tensor.node, plan_.num_nodes, "nodes");
      check_enumerator(subject, "dtype", tensor.dtype, kLastDType, "element type");
      check_enumerator(subject, "flags", tensor.flags,
                       FX_TENSOR_CONJUGATE | FX_TENSOR_NEGATIVE | FX_TENSOR_UNKNOWN | FX_TENSOR_CHOSEN, "set of flags");
      if (!check_span(subject, "dims", tensor.dims, 2 * uint64_t{tensor.rank}, plan_.num_words, "words")) continue;
      const bool has_no_layout = tensor.storage == FX_NONE || (tensor.flags & FX_TENSOR_UNKNOWN) != 0;
      uint32_t ready = 0;
      const auto see = [&](const char* field, FxWord word, bool may_be_none) {
        if (!check_amount(subject, field, word, may_be_none) || word_kind(word) != FX_WORD_SCALAR) return;
        ready = std::max(ready, plan_.scalars[word_index(word)].ready);
      };
      see("offset", tensor.offset, has_no_layout);
      for (uint32_t dim = 0; dim < tensor.rank; ++dim) {
        see("a size", plan_.words[tensor.dims + dim], false);
        see("a stride", plan_.words[tensor.dims + tensor.rank + dim], has_no_layout);
      }
      facts_.tensor_ready[i] = ready;
    }
  }

  // Checks the value of an input or a result: a tensor, a scalar, a recorded number or NONE.
  bool check_given(Subject subject, const char* field, FxWord word) {
    const uint64_t kind = word_kind(word);
    if (kind != FX_WORD_TENSOR && kind != FX_WORD_SCALAR && kind != FX_WORD_NONE && !is_number(kind)) {
      std::string fault(field);
      fault += " is neither a tensor nor a number";
      bad_value(subject, fault);
      return false;
    }
    return check_word(subject, field, word);
  }

  void check_inputs() {
    for (uint64_t i = 0; i < plan_.num_inputs && !full(); ++i) {
      const FxInput& input = plan_.inputs[i];
      const Subject subject{Part::kInput, i};
      check_name(subject, "name", input.name);
      check_name(subject, "fqn", input.fqn);
      check_optional(subject, "node", input.node, plan_.num_nodes, "nodes");
      check_enumerator(subject, "role", input.role, kLastInputRole, "role");
      check_given(subject, "value", input.value);
      if (input.first > plan_.num_steps) {
        bad_value(subject, "must exist before step " + std::to_string(input.first) + ", but there are " +
                               std::to_string(plan_.num_steps));
      }
    }
  }

  void check_steps() {
    facts_.tensor_begin.reserve(plan_.num_steps + 1);
    facts_.scalar_begin.reserve(plan_.num_steps + 1);
    const auto see = [&](FxWord word) {
      const auto index = static_cast<uint32_t>(word_index(word));
      if (word_kind(word) == FX_WORD_TENSOR) facts_.arg_tensors.push_back(index);
      if (word_kind(word) == FX_WORD_SCALAR) facts_.arg_scalars.push_back(index);
      if (word_kind(word) == FX_WORD_GROUP) {
        const FxWord choice = plan_.groups[index].choice;
        if (word_kind(choice) == FX_WORD_SCALAR) {
          facts_.arg_scalars.push_back(static_cast<uint32_t>(word_index(choice)));
        }
      }
    };
    for (uint64_t i = 0; i < plan_.num_steps && !full() && !too_large_; ++i) {
      facts_.tensor_begin.push_back(facts_.arg_tensors.size());
      facts_.scalar_begin.push_back(facts_.arg_scalars.size());
      check_step(i, see);
    }
    facts_.tensor_begin.push_back(facts_.arg_tensors.size());
    facts_.scalar_begin.push_back(facts_.arg_scalars.size());
  }

  template <class See>
  void check_step(uint64_t i, const See& see) {
    const FxStep& step = plan_.steps[i];
    const Subject subject = step_at(i);
    check_index(subject, "op", step.op, plan_.num_ops, "ops");
    check_optional(subject, "node", step.node, plan_.num_nodes, "nodes");
    check_optional(subject, "draw", step.draw, plan_.num_draws, "draws");
    check_optional(subject, "other", step.other, plan_.num_steps, "steps");
    check_name(subject, "stream", step.stream);
    check_enumerator(subject, "kind", step.kind, FX_STEP_STREAM, "kind of step");
    check_enumerator(subject, "flags", step.flags,
                     FX_STEP_WRITES | FX_STEP_DRAWS | FX_STEP_OPAQUE | FX_STEP_HOST_WAITS | FX_STEP_TRANSFERS,
                     "set of flags");
    if (check_optional(subject, "group", step.group, plan_.num_groups, "groups")) {
      if (step.group != FX_NONE) {
        see((FxWord{step.group} << 8) | FX_WORD_GROUP);
      } else if (step.kind == FX_STEP_COLLECTIVE) {
        faults_.add(PlanFaultKind::kBadIndex, subject, "a collective without a group");
      }
    }
    if (are_spans_good(step, subject)) check_step_items(step, subject, see);
  }

  bool are_spans_good(const FxStep& step, const Subject& subject) {
    bool are_good = true;
    const auto check = [&](const char* field, uint64_t first, uint64_t num, uint64_t count, const char* array) {
      are_good &= check_span(subject, field, first, num, count, array);
    };
    check("args", step.args, step.num_args, plan_.num_words, "words");
    check("keywords", step.keywords, 2 * uint64_t{step.num_keywords}, plan_.num_words, "words");
    check("results", step.results, step.num_results, plan_.num_words, "words");
    check("writes", step.writes, step.num_writes, plan_.num_indices, "indices");
    check("frees", step.frees, step.num_frees, plan_.num_indices, "indices");
    check("after", step.after, step.num_after, plan_.num_indices, "indices");
    return are_good && charge(uint64_t{step.num_args} + 2 * uint64_t{step.num_keywords} + step.num_results +
                              step.num_writes + step.num_frees + step.num_after);
  }

  template <class See>
  void check_step_items(const FxStep& step, const Subject& subject, const See& see) {
    for (uint32_t k = 0; k < step.num_args && !full(); ++k) {
      const FxWord word = plan_.words[step.args + k];
      if (check_word(subject, "an argument", word)) walk(word, see);
    }
    for (uint32_t k = 0; k < step.num_keywords && !full(); ++k) {
      const FxWord name = plan_.words[step.keywords + 2 * uint64_t{k}];
      const FxWord word = plan_.words[step.keywords + 2 * uint64_t{k} + 1];
      if (word_kind(name) != FX_WORD_STRING) {
        bad_value(subject, "the name of a keyword is not a string");
      } else {
        check_word(subject, "the name of a keyword", name);
      }
      if (check_word(subject, "a keyword", word)) walk(word, see);
    }
    for (uint32_t k = 0; k < step.num_results && !full(); ++k) {
      check_given(subject, "a result", plan_.words[step.results + k]);
    }
    const auto check_all = [&](const char* field, uint32_t first, uint32_t num, uint64_t count, const char* array) {
      for (uint32_t k = 0; k < num && !full(); ++k) check_index(subject, field, plan_.indices[first + k], count, array);
    };
    check_all("one of `writes`", step.writes, step.num_writes, plan_.num_storages, "storages");
    check_all("one of `frees`", step.frees, step.num_frees, plan_.num_storages, "storages");
    check_all("one of `after`", step.after, step.num_after, plan_.num_steps, "steps");
  }

  void check_outputs() {
    for (uint64_t i = 0; i < plan_.num_outputs && !full(); ++i) {
      const FxOutput& output = plan_.outputs[i];
      const Subject subject{Part::kOutput, i};
      check_name(subject, "name", output.name);
      check_enumerator(subject, "role", output.role, kLastOutputRole, "role");
      check_optional(subject, "is_input", output.is_input, plan_.num_inputs, "inputs");
      if (!check_word(subject, "value", output.value)) continue;
      walk(output.value, [&](FxWord word) {
        const std::pair<uint32_t, uint32_t> pair{static_cast<uint32_t>(i), static_cast<uint32_t>(word_index(word))};
        if (word_kind(word) == FX_WORD_TENSOR) facts_.output_tensors.push_back(pair);
        if (word_kind(word) == FX_WORD_SCALAR) facts_.output_scalars.push_back(pair);
      });
    }
  }

  const FxPlan& plan_;
  FaultList& faults_;
  PlanFacts& facts_;
  const size_t before_;
  uint64_t budget_ = 0;  // number of words that may still be visited
  bool too_large_ = false;
  std::vector<uint8_t> lists_;  // by word
};

}  // namespace

std::string text_of(Subject subject) {
  const std::string name = kPartNames[static_cast<size_t>(subject.part)];
  return subject.part == Part::kPlan ? name : name + " " + std::to_string(subject.index);
}

void FaultList::add(PlanFaultKind kind, Subject subject, const std::string& message, Subject other) {
  if (full()) return;
  PlanFault fault;
  fault.kind = kind;
  fault.graphs = graphs_;
  fault.message = text_of(subject) + ": " + message;
  for (const Subject part : {other, subject}) {
    const auto index = static_cast<uint32_t>(part.index);
    if (part.part == Part::kStep) fault.step = index;
    if (part.part == Part::kStorage) fault.storage = index;
    if (part.part == Part::kTensor) fault.tensor = index;
    if (part.part == Part::kScalar) fault.scalar = index;
  }
  faults_.push_back(std::move(fault));
}

bool check_structure(const FxPlan& plan, FaultList& faults, PlanFacts& facts) {
  return Structure(plan, faults, facts).check();
}

}  // namespace fxopt::plan_check
