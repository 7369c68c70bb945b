#pragma once

#include <cstddef>
#include <cstdint>
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
  const Graph* graph = nullptr;  // null for a part of the module that belongs to no graph, such as a symbol
  NodeId node;                   // invalid if the place is not in a node
  std::string field;             // path of the field in the node, graph or module: "args[1].list[0]"
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

// Returns the message for an index that does not fit `count` items. The items are numbered from 0.
// The index may also be the beginning of a range that ends after the last item. Example: "the node
// takes element 2, but the elements are numbered 0 to 1". Here, `what` is "the node takes element",
// and `items` is "elements".
std::string beyond(std::string_view what, int64_t index, int64_t count, std::string_view items);

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
  // The arguments of one nesting level.
  struct Frame {
    ArgRange range;
    // Number of visited arguments of this level. The last visited argument has the index
    // `range.first + at - 1`.
    uint32_t at = 0;
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
  // The values of one nesting level.
  struct Frame {
    uint32_t first = 0;  // id of the first value
    uint32_t count = 0;  // number of values
    // Number of visited values of this level. The last visited value has the id `first + at - 1`.
    uint32_t at = 0;
    std::string_view label;
  };

  const Pool* pool_;
  std::vector<Frame> stack_;
  bool started_ = false;
};

}  // namespace fxopt
