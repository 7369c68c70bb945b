#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "ir/graph/module.h"

// Shared by the parts of the verifier: the place of a diagnostic, the list of diagnostics, and
// non-recursive walks over arguments and values.

namespace fxopt {

// The place in a module that a diagnostic points to.
struct Place {
  const Graph* graph = nullptr;  // null: a record of the module
  NodeId node;                   // invalid: the graph itself
  std::string field;             // "args[1].list[0]"
};

// Diagnostics in order of arrival, up to a limit. Those beyond the limit are only counted.
class Report {
 public:
  Report(const Module& module, size_t limit) : module_(&module), limit_(limit) {}

  void add(ErrorCode code, const Place& place, std::string message, std::string hint = std::string());
  bool is_full() const { return errors_.size() == limit_; }
  // Returns the list. If the limit was exceeded, the last entry gives the number of diagnostics
  // that it replaces.
  std::vector<Error> finish() &&;

 private:
  const Module* module_;
  size_t limit_;
  size_t total_ = 0;
  std::vector<Error> errors_;
};

// Returns `text` in quotation marks. Cuts it after 120 bytes.
std::string quoted(std::string_view text);

// Visits every argument below a range, parents before children, in order.
//
//   ArgWalk walk(module, pool);
//   for (walk.start("args", range, ArgWalk::Keys::kNone); walk.next();) use(walk.arg());
class ArgWalk {
 public:
  enum class Keys : uint8_t {
    kNone,  // arguments by position
    kEven,  // key, value, key, value, ...
  };
  ArgWalk(const Module& module, const Pool& pool) : module_(&module), pool_(&pool) {}

  void start(std::string_view label, ArgRange range, Keys keys);
  // Moves to the next argument. Returns false at the end.
  bool next();
  const Arg& arg() const { return pool_->arg(index()); }
  ArgIndex index() const { return ArgIndex(stack_.back().range.first + stack_.back().at - 1); }
  // True if the current argument is a key of a dict.
  bool is_key() const { return stack_.back().keys == Keys::kEven && stack_.back().at % 2 == 1; }
  size_t depth() const { return stack_.size(); }  // 1 for the arguments of the range itself
  // "args[1].list[0]", "kwargs.out.tuple[2]". O(depth).
  std::string path() const;

 private:
  struct Frame {
    ArgRange range;
    uint32_t at = 0;  // one past the current argument
    Keys keys = Keys::kNone;
    std::string_view label;
  };

  const Module* module_;
  const Pool* pool_;
  std::vector<Frame> stack_;
  bool started_ = false;
};

// Visits a value and everything it contains, parents before children, in order.
class ValueWalk {
 public:
  explicit ValueWalk(const Pool& pool) : pool_(&pool) {}

  void start(std::string_view label, ValueId root);
  bool next();
  const Value& value() const { return pool_->value(id()); }
  ValueId id() const { return ValueId(stack_.back().first + stack_.back().at - 1); }
  // "value.tuple[1]". O(depth).
  std::string path() const;

 private:
  struct Frame {
    uint32_t first = 0;
    uint32_t count = 0;
    uint32_t at = 0;  // one past the current value
    std::string_view label;
  };

  const Pool* pool_;
  std::vector<Frame> stack_;
  bool started_ = false;
};

}  // namespace fxopt
