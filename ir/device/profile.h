#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/interner.h"
#include "core/result.h"
#include "ir/alias/collectives.h"
#include "ir/graph/expr.h"
#include "ir/graph/types.h"

namespace fxopt {

// How long a call holds the memory that it takes besides its outputs.
enum class HiddenKind : uint8_t {
  kPersistent,  // from the first call on, for ever: kept by a library for its handle
  kTemporary,   // from before the outputs until the call returns: copies of inputs, accumulators
  kWorkspace,   // from after the outputs until the call returns
};

// The evidence for a figure.
enum class Evidence : uint8_t {
  kSource,    // read in the framework's source
  kEstimate,  // only a library knows: right in size, not in bytes
  kMeasured,
};
std::string_view evidence_name(Evidence value);

// A figure of the calls of one operator.
struct CallRow {
  std::string target;  // "aten.mm.default", or "aten.mm" for every overload
  bool every_overload = false;
  ExprId value;  // over the symbols described in ir/device/README.md
};

// Memory that calls take from the caching allocator besides their outputs. At 0 bytes and below:
// none.
struct HiddenRow : CallRow {
  HiddenKind kind{};
  std::string name;  // "cublas"; persistent memory is taken once for each name
  Evidence evidence{};
};

// Floating-point operations of calls. A multiplication and an addition are two.
struct WorkRow : CallRow {};

// Memory outside the caching allocator.
struct OutsideRow {
  std::string name;  // "context"
  bool per_communicator = false;
  ExprId bytes;
  Evidence evidence{};
};

// A text of a profile, and its name in messages.
struct ProfileText {
  std::string name;
  std::string_view text;  // must stay valid until all texts are read
};

// Returns the text of the file that an `include` in `from` names; nothing if it does not exist.
using ProfileInclude = std::function<std::optional<ProfileText>(const std::string& from, std::string_view file)>;

// How long a collective takes, in nanoseconds, over the symbols that LinkModel sets.
struct LinkRow {
  CollectiveKind kind{};
  ExprId nanoseconds;
  Evidence evidence{};
};

// The known figures of a device and of a framework's kernels on it: data, read from text.
// ir/device/README.md describes the grammar and the symbols.
class DeviceProfile {
 public:
  // Reads several texts as one: a statement replaces that of the same subject in an earlier text.
  // Fails with kBadProfile and the line, also if one text has a subject twice.
  // O(length of the expressions, macros expanded).
  static Result<std::unique_ptr<DeviceProfile>> parse(std::span<const ProfileText> texts,
                                                      const ProfileInclude& include);

  std::string name;  // the texts' names with "+" between them
  Interner strings;
  ExprTable exprs{strings};
  SymbolValues constants;
  std::vector<HiddenRow> hidden;
  std::vector<WorkRow> work;
  std::vector<OutsideRow> outside;
  std::vector<LinkRow> links;                         // at most one for each kind
  std::map<std::string, int64_t, std::less<>> flops;  // dense, per second, by dtype: "bf16", "f8"
  std::optional<int64_t> bandwidth;                   // the memory's, in bytes per second

  // A constant such as "device.memory"; nothing if no text has it. O(1).
  std::optional<int64_t> constant(std::string_view constant_name) const;

  // Operations per second for a dtype: its own figure, or that of all formats of its width ("f8").
  // O(log n).
  std::optional<int64_t> flops_for(DType dtype) const;
};

// The profiles built into this program, sorted by name: devices ("h100") and frameworks
// ("torch-2.15").
std::vector<std::string_view> builtin_profiles();

// The built-in profile of this name or file name; nothing if none exists.
std::optional<ProfileText> builtin_profile(std::string_view name);

}  // namespace fxopt
