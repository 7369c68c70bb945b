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
  std::optional<int64_t> low, high;  // of kRange, absent: as in the file; of kValue both are the value
};

// Errors: kBadOptionValue; kUsage for a name that is given twice.
Result<std::vector<SymbolSetting>> parse_symbol_settings(const std::vector<std::string>& texts);

struct BoundSymbols {
  SymbolValues values;
  // A symbol with a range has no value above while its hint lies within, else that end of the range that is next to it.
  SymbolRanges ranges;
};

// The settings by the module's symbols. A name counts before a pattern, and a later pattern before an earlier one.
// Errors: kUnknownNode for what no symbol matches, but for patterns where there are no symbols at all; kBadOptionValue
// for what is out of a symbol's range, and for an end that it does not have. O(symbols * settings).
Result<BoundSymbols> bind_symbols(const std::vector<SymbolSetting>& settings, const Module& module,
                                  const std::string& file);

// By name: a number, or the text of what is none.
nlohmann::ordered_json symbol_settings_json(const std::vector<SymbolSetting>& settings);

}  // namespace fxopt
