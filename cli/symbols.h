#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/result.h"
#include "ir/graph/expr_bounds.h"
#include "ir/graph/module.h"

namespace fxopt {

// One --symbol NAME=VALUE, where NAME may have '*' for any characters.
struct SymbolSetting {
  enum class Kind : uint8_t {
    kValue,
    kMin,    // the smallest value of the file's range
    kMax,    // the largest
    kRange,  // LOW..HIGH: narrower than the file's
  };
  std::string text;  // as given
  std::string name;
  Kind kind = Kind::kValue;
  // For kRange, absent: as in the file. For kValue both are the value.
  std::optional<int64_t> low, high;
};

// Errors: kBadOptionValue; kUsage for a name that is given twice.
Result<std::vector<SymbolSetting>> parse_symbol_settings(const std::vector<std::string>& texts);

struct BoundSymbols {
  SymbolValues values;
  // A symbol with a range has no value above if its hint is within the range, else the nearest end
  // of the range.
  SymbolRanges ranges;
};

// Applies the settings to the module's symbols. A name overrides a pattern, and a later pattern
// overrides an earlier one. Errors: kUnknownNode if no symbol matches, except for a pattern if the
// module has no symbols; kBadOptionValue for a value outside of a symbol's range, and for an end
// that the range does not have. O(symbols * settings).
Result<BoundSymbols> bind_symbols(const std::vector<SymbolSetting>& settings, const Module& module,
                                  const std::string& file);

// By name: a number, or the text of any other setting.
nlohmann::ordered_json symbol_settings_json(const std::vector<SymbolSetting>& settings);

}  // namespace fxopt
