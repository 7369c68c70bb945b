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

// How long the memory is taken that a call takes besides its outputs.
enum class HiddenKind : uint8_t {
  kPersistent,  // from the first call on, for ever: what a library keeps for its handle
  kTemporary,   // before the outputs, until the call returns: copies of inputs, accumulators
  kWorkspace,   // behind the outputs, until the call returns
};

// What a figure rests on.
enum class Evidence : uint8_t {
  kSource,    // read in the framework's source
  kEstimate,  // only a library knows, this is of its size
  kMeasured,
};
std::string_view evidence_name(Evidence value);

// A figure of the calls of one operator.
struct CallRow {
  std::string target;  // "aten.mm.default", or "aten.mm" for every overload
  bool every_overload = false;
  ExprId value;  // of the symbols described in ir/device/README.md
};

// Memory that calls take from the caching allocator besides their outputs; 0 bytes and below: nothing.
struct HiddenRow : CallRow {
  HiddenKind kind{};
  std::string name;  // "cublas"; what is persistent is taken once for each name
  Evidence evidence{};
};

// Floating-point operations of calls, a multiplication and an addition being two.
struct WorkRow : CallRow {};

// Memory outside the caching allocator.
struct OutsideRow {
  std::string name;  // "context"
  bool per_communicator = false;
  ExprId bytes;
  Evidence evidence{};
};

// A part of a profile and what messages call it.
struct ProfileText {
  std::string name;
  std::string_view text;  // must stay until all is read
};

// Gives the text of the file that an `include` in `from` names; nothing where there is none.
using ProfileInclude = std::function<std::optional<ProfileText>(const std::string& from, std::string_view file)>;

// How long a collective takes, in nanoseconds; of the symbols that LinkModel gives values.
struct LinkRow {
  CollectiveKind kind{};
  ExprId nanoseconds;
  Evidence evidence{};
};

// What is known of a device and of what a framework's kernels take on it: data, read from text. The grammar and the
// symbols stand in ir/device/README.md.
class DeviceProfile {
 public:
  // Reads several texts as one; a statement replaces the one of the same subject in a text before it. Errors:
  // kBadProfile with the line, also for a subject that one text has twice. O(length of the expressions, macros
  // expanded).
  static Result<std::unique_ptr<DeviceProfile>> parse(std::span<const ProfileText> texts,
                                                      const ProfileInclude& include);

  std::string name;  // the texts' names with "+" between them
  Interner strings;
  ExprTable exprs{strings};
  SymbolValues constants;
  std::vector<HiddenRow> hidden;
  std::vector<WorkRow> work;
  std::vector<OutsideRow> outside;
  std::vector<LinkRow> links;                         // one for each kind that has one
  std::map<std::string, int64_t, std::less<>> flops;  // dense, per second, by dtype: "bf16", "tf32", "f8"
  std::optional<int64_t> bandwidth;                   // of its memory, bytes per second

  // A constant such as "device.memory"; nothing where no text has it. O(1).
  std::optional<int64_t> constant(std::string_view constant_name) const;

  // Operations per second for a dtype: its own figure, or that of all formats of its width ("f8"). O(log n).
  std::optional<int64_t> flops_for(DType dtype) const;
};

// The profiles this build carries, sorted by name: devices ("h100") and frameworks ("torch-2.15").
std::vector<std::string_view> builtin_profiles();

// One of them, by its name or its file's; nothing when there is none of that name.
std::optional<ProfileText> builtin_profile(std::string_view name);

}  // namespace fxopt
