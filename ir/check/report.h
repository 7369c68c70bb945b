#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "ir/graph/module.h"

// Code that all parts of the verifier share: the place of a diagnostic, the list of diagnostics,
// and non-recursive walks over arguments and values.

namespace fxopt {

// The place in a module to which a diagnostic refers.
struct Place {
  const Graph* graph = nullptr;  // null for an entry of the module outside of graphs
  NodeId node;                   // invalid for the graph itself
  std::string field;             // the field of the node or entry: "args[1].list[0]"
};

// A list of diagnostics in the order in which they were added, up to a limit. Diagnostics above the
// limit are only counted.
class Report {
 public:
  Report(const Module& module, size_t limit) : module_(&module), limit_(limit) {}

  void add(ErrorCode code, const Place& place, std::string message, std::string hint = std::string());
  bool is_full() const { return errors_.size() == limit_; }
  // Returns the list. If the limit was exceeded, the last entry states how many diagnostics it
  // replaces.
  std::vector<Error> finish() &&;

 private:
  const Module* module_;
  size_t limit_;
  size_t total_ = 0;
  std::vector<Error> errors_;
};

// Returns `text` in quotation marks, cut after 120 bytes.
std::string quoted(std::string_view text);

// Visits every argument of a range and all nested arguments in order. A parent comes before its
// children.
//
//   ArgWalk walk(module, pool);
//   for (walk.start("args", range, ArgWalk::Keys::kNone); walk.next();) use(walk.arg());
class ArgWalk {
 public:
  enum class Keys : uint8_t {
    kNone,  // arguments are identified by position
    kEven,  // arguments alternate: key, value, key, value, ...
  };
  ArgWalk(const Module& module, const Pool& pool) : module_(&module), pool_(&pool) {}

  void start(std::string_view label, ArgRange range, Keys keys);
  // Moves to the next argument. Returns false at the end.
  bool next();
  const Arg& arg() const { return pool_->arg(index()); }
  ArgIndex index() const { return ArgIndex(stack_.back().range.first + stack_.back().at - 1); }
  // True if the current argument is a key of a dict.
  bool is_key() const { return stack_.back().keys == Keys::kEven && stack_.back().at % 2 == 1; }
  // The depth is 1 for the arguments that are directly in the range.
  size_t depth() const { return stack_.size(); }
  // Returns the path of the current argument: "args[1].list[0]", "kwargs.out.tuple[2]". O(depth).
  std::string path() const;

 private:
  struct Frame {
    ArgRange range;
    uint32_t at = 0;  // index after the current argument
    Keys keys = Keys::kNone;
    std::string_view label;
  };

  const Module* module_;
  const Pool* pool_;
  std::vector<Frame> stack_;
  bool started_ = false;
};

// Visits a value and all nested values in order. A parent comes before its children.
class ValueWalk {
 public:
  explicit ValueWalk(const Pool& pool) : pool_(&pool) {}

  void start(std::string_view label, ValueId root);
  bool next();
  const Value& value() const { return pool_->value(id()); }
  ValueId id() const { return ValueId(stack_.back().first + stack_.back().at - 1); }
  // Returns the path of the current value: "value.tuple[1]". O(depth).
  std::string path() const;

 private:
  struct Frame {
    uint32_t first = 0;
    uint32_t count = 0;
    uint32_t at = 0;  // index after the current value
    std::string_view label;
  };

  const Pool* pool_;
  std::vector<Frame> stack_;
  bool started_ = false;
};

}  // namespace fxopt
