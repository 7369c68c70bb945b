#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/check.h"
#include "ir/ops/describe.h"
#include "ir/ops/op.h"

namespace fxopt {
namespace {

using C = ComputeClass;
using E = Effect;
using S = OpSet;
using V = ViewKind;

// Facts that few rows of the operator table state.
struct RowExtra {
  std::string_view hidden_writes = {};   // written arguments that the schema does not declare
  std::string_view hidden_aliases = {};  // for each return, the argument that it aliases, or "-"
  std::string_view training = {};        // the argument that enables the writes
  int16_t operator_arg = -1;
  bool has_subgraphs = false;
  bool is_multi_output = false;  // for rows without a schema
  bool functionalizes = false;
  bool clones_storage = false;
  bool changes_metadata = false;
  bool moves_storage = false;
  bool may_return_argument = false;
  bool joins_outputs = false;
  bool overwrites = false;
  bool reads_index = false;
  std::string_view shared = {};  // the argument that some calls return
  bool shares_only_empty = false;
  HandsOn hands_on = HandsOn::kNothing;
  bool chooses_layout = false;
  Holds holds = Holds::kItself;
};

// Texts are pointers and not string_views, because compilers limit the number of steps in constant
// evaluation.
struct Row {
  const char* name;
  const char* schema;  // from its opening parenthesis on; empty without a schema
  ComputeClass compute = C::kOther;
  OpSet sets = S::kNone;
  Effect effects = E::kNone;  // in addition to the schema's effects
  ViewKind view = V::kNone;   // for kNone, the schema's annotations decide
  RowExtra extra = {};
};

constexpr Row kRows[] = {
#include "ir/ops/aten.inc"
#include "ir/ops/extra.inc"
#include "ir/ops/libraries.inc"
};

// Removes the first word of `words` and returns it.
std::string_view next_word(std::string_view& words) {
  const size_t end = std::min(words.find(' '), words.size());
  const std::string_view word = words.substr(0, end);
  words.remove_prefix(std::min(end + 1, words.size()));
  return word;
}

int16_t known_arg(const Schema& schema, std::string_view name) {
  const int16_t position = schema.find_arg(name);
  FXOPT_CHECK(position >= 0, "op table: " + schema.name + " has no argument " + std::string(name));
  return position;
}

// Returns the full schema of a row. "aten.add.Tensor" is "aten::add.Tensor" in a schema, and
// "aten.mm.default" is "aten::mm".
std::string schema_text(const Row& row) {
  const std::string_view name = row.name;
  const size_t space = name.find('.');
  const size_t overload = name.rfind('.');
  FXOPT_CHECK(space < overload, "op table: no overload in " + std::string(name));
  std::string text(name.substr(0, space));
  text += "::";
  text += name.substr(space + 1, overload - space - 1);
  if (name.substr(overload) != ".default") text += name.substr(overload);
  return text += row.schema;
}

// Adds the facts that the schema hides to the facts of read_schema().
void add_hidden(const Row& row, Op& op) {
  const Schema& schema = *op.schema;
  for (std::string_view words = row.extra.hidden_writes; !words.empty();) {
    op.writes.push_back(static_cast<uint8_t>(known_arg(schema, next_word(words))));
    op.hides_writes = true;
    op.effects = op.effects | E::kMutates;
  }
  std::sort(op.writes.begin(), op.writes.end());
  std::string_view words = row.extra.hidden_aliases;
  for (size_t i = 0; !words.empty(); ++i) {
    const std::string_view name = next_word(words);
    if (name == "-") continue;
    op.aliases.at(i) = known_arg(schema, name);
    op.hides_alias = true;
  }
  if (!row.extra.training.empty()) op.training_arg = known_arg(schema, row.extra.training);
  if (!row.extra.shared.empty()) op.shared_arg = known_arg(schema, row.extra.shared);
  if (row.view == V::kNone) return;
  op.view = row.view;
  if (op.aliases.at(0) != 0) op.hides_alias = true;
  op.aliases[0] = 0;
}

Op make_op(const Row& row) {
  Op op;
  op.name = row.name;
  op.compute = row.compute;
  op.sets = row.sets;
  op.effects = has_effect(row.effects, E::kOpaque) ? row.effects | kUndescribed : row.effects;
  op.operator_arg = row.extra.operator_arg;
  op.has_subgraphs = row.extra.has_subgraphs;
  op.is_multi_output = row.extra.is_multi_output;
  op.functionalizes = row.extra.functionalizes;
  op.clones_storage = row.extra.clones_storage;
  op.changes_metadata = row.extra.changes_metadata;
  op.moves_storage = row.extra.moves_storage;
  op.may_return_argument = row.extra.may_return_argument;
  op.joins_outputs = row.extra.joins_outputs;
  op.overwrites = row.extra.overwrites;
  op.reads_index = row.extra.reads_index;
  op.shares_only_empty = row.extra.shares_only_empty;
  op.hands_on = row.extra.hands_on;
  op.holds = row.extra.holds;
  op.chooses_layout = row.extra.chooses_layout;
  if (std::string_view(row.schema).empty()) {
    op.view = row.view;
    return op;
  }
  const Result<Schema> schema = parse_schema(schema_text(row));
  FXOPT_CHECK(schema.ok(), "op table: " + std::string(row.name) + ": " + schema.error().message);
  read_schema(*schema, op);
  add_hidden(row, op);
  return op;
}

class OpTable {
 public:
  OpTable() : ops_(std::size(kRows)) {
    index_.reserve(std::size(kRows));
    for (size_t i = 0; i < std::size(kRows); ++i) {
      FXOPT_CHECK(index_.emplace(kRows[i].name, i).second, "op table: two rows for " + std::string(kRows[i].name));
    }
  }

  OpId find(std::string_view name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? OpId() : OpId(found->second);
  }

  std::vector<const Op*> all() {
    std::vector<const Op*> ops;
    for (size_t i = 0; i < std::size(kRows); ++i) ops.push_back(&get(i));
    std::sort(ops.begin(), ops.end(), [](const Op* left, const Op* right) { return left->name < right->name; });
    return ops;
  }

  // Returns the op of row `i`. The op is created on first use.
  const Op& get(size_t i) {
    if (const Op* op = ops_[i].load(std::memory_order_acquire)) return *op;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const Op* op = ops_[i].load(std::memory_order_relaxed)) return *op;
    made_.push_back(make_op(kRows[i]));
    made_.back().id = OpId(i);
    ops_[i].store(&made_.back(), std::memory_order_release);
    return made_.back();
  }

 private:
  std::unordered_map<std::string_view, size_t> index_;
  std::vector<std::atomic<const Op*>> ops_;  // by row
  std::deque<Op> made_;                      // guarded by mutex_; elements never move
  std::mutex mutex_;
};

OpTable& table() {
  static OpTable rows;
  return rows;
}

}  // namespace

const Op* find_builtin_op(std::string_view name) {
  const OpId id = table().find(name);
  return id.is_valid() ? &table().get(id.index()) : nullptr;
}

size_t num_builtin_ops() { return std::size(kRows); }

OpId find_op_id(std::string_view name) { return table().find(name); }

const Op& builtin_op(OpId id) {
  FXOPT_CHECK(id.index() < num_builtin_ops(), "no op has that id");
  return table().get(id.index());
}

const std::vector<const Op*>& builtin_ops() {
  static const std::vector<const Op*> ops = table().all();
  return ops;
}

}  // namespace fxopt
