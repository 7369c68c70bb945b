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

// The times at which a call's hidden memory is allocated and freed. Hidden memory is memory that a
// call takes in addition to its outputs.
enum class HiddenKind : uint8_t {
  // Allocated by the first call. A library keeps the memory for its handle and never frees it.
  kPersistent,
  // Allocated before the outputs and freed when the call returns. Examples are accumulators and
  // copies of inputs.
  kTemporary,
  kWorkspace,  // allocated after the outputs, freed when the call returns
};

// The source of a number in a device profile.
enum class Evidence : uint8_t {
  kSource,    // taken from the framework's source
  kEstimate,  // an estimate of a library's memory, correct in its order of magnitude
  kMeasured,  // observed on the device
};
template <>
struct EnumNames<Evidence> {
  static constexpr auto kAll = number_names<Evidence>({"source", "estimate", "measured"});
};

// One row of a device profile: a value for each call of one operator, such as the number of
// floating-point operations of the call.
struct CallRow {
  std::string target;  // "aten.mm.default", or "aten.mm" for every overload
  bool every_overload = false;
  ExprId value;  // an expression; ir/device/README.md lists its symbols
};

// Memory that calls take from the caching allocator in addition to their outputs. If the value is 0
// or negative, the call takes no additional memory.
struct HiddenRow : CallRow {
  HiddenKind kind{};
  std::string name;  // for example "cublas"; persistent memory is taken once for each name
  Evidence evidence{};
};

// Floating-point operations of calls. A multiplication and an addition count as two operations.
struct WorkRow : CallRow {};

// One row of a device profile: memory that is taken outside the caching allocator.
struct OutsideRow {
  std::string name;  // for example "context"
  bool per_communicator = false;
  ExprId bytes;
  Evidence evidence{};
};

// The text of a profile, and its name in messages.
struct ProfileText {
  std::string name;
  std::string_view text;  // must stay valid until all texts are read
};

// Returns the text of the file that an `include` statement names. Returns nothing if the file does
// not exist. `from` is the name of the text that contains the statement.
using ProfileInclude = std::function<std::optional<ProfileText>(const std::string& from, std::string_view file)>;

// The duration of a collective: an expression whose value is in nanoseconds. LinkModel
// (ir/cost/links.h) lists the symbols that the expression may use.
struct LinkRow {
  CollectiveKind kind{};
  ExprId nanoseconds;
  Evidence evidence{};
};

// The known figures of a device and of a framework's kernels on this device. The figures are read
// from text. ir/device/README.md describes the grammar and the symbols.
class DeviceProfile {
 public:
  // Reads several texts as one profile. Different texts may set the same value, such as a constant.
  // In this case, the last text decides. Fails with kBadProfile and the line in these cases:
  // - A text is invalid.
  // - A single text sets a value twice.
  //
  // O(length of the expressions after macro expansion).
  static Result<std::unique_ptr<DeviceProfile>> parse(std::span<const ProfileText> texts,
                                                      const ProfileInclude& include);

  std::string name;  // the names of the texts, joined by "+"
  Interner strings;
  ExprTable exprs{strings};
  SymbolValues constants;
  std::vector<HiddenRow> hidden;
  std::vector<WorkRow> work;
  std::vector<OutsideRow> outside;
  std::vector<LinkRow> links;  // at most one for each kind of collective
  // Dense operations per second by dtype: "bf16", "f8".
  std::map<std::string, int64_t, std::less<>> flops;
  std::optional<int64_t> bandwidth;  // memory bandwidth in bytes per second

  // Returns the value of a constant such as "device.memory". Returns nothing if the profile does
  // not define the constant. O(1).
  std::optional<int64_t> constant(std::string_view constant_name) const;

  // Returns the operations per second for a dtype. If an 8-bit or 4-bit float has no entry of its
  // own, returns the entry for all floats of this width, "f8" or "f4". O(log n).
  std::optional<int64_t> flops_for(DType dtype) const;
};

// Returns the names of the profiles built into this program, sorted. Some profiles are devices
// ("h100"), and others are frameworks ("torch-2.15").
std::vector<std::string_view> builtin_profiles();

// Returns the built-in profile with this name or file name. Returns nothing if no such profile
// exists.
std::optional<ProfileText> builtin_profile(std::string_view name);

}  // namespace fxopt
