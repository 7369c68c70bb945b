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

// One option --symbol NAME=VALUE. A '*' in NAME matches any characters.
struct SymbolSetting {
  enum class Kind : uint8_t {
    kValue,
    kMin,    // the smallest value of the range that the file gives for the symbol
    kMax,    // the largest value of the range that the file gives for the symbol
    kRange,  // LOW..HIGH, within the range that the file gives for the symbol
  };
  std::string text;  // the value of --symbol as the user wrote it
  std::string name;
  Kind kind = Kind::kValue;
  // The ends of a kRange. The file also gives a range for each symbol. If an end is absent here,
  // the end of the file's range applies. For kValue, both ends are the value.
  std::optional<int64_t> low, high;
};

// Parses the values of --symbol. Fails with kBadOptionValue if a value is invalid, and with kUsage
// if a name is given twice.
Result<std::vector<SymbolSetting>> parse_symbol_settings(const std::vector<std::string>& texts);

struct BoundSymbols {
  SymbolValues values;
  // The ranges from kRange settings. A symbol in `ranges` is also in `values` if its hint is
  // outside of the range. The value is then the nearest end of the range.
  SymbolRanges ranges;
};

// Applies the settings to the module's symbols. A name overrides a pattern, and a later pattern
// overrides an earlier one. Fails with kUnknownNode if a setting matches no symbol. Exception: a
// pattern may match nothing if the module has no symbols. Fails with kBadOptionValue if a value is
// outside of a symbol's range. Also fails with kBadOptionValue for NAME=max if the file records no
// largest value of the symbol, and for NAME=min if it records no smallest value. O(symbols *
// settings).
Result<BoundSymbols> bind_symbols(const std::vector<SymbolSetting>& settings, const Module& module,
                                  const std::string& file);

// Returns the settings by name. A kValue becomes a number. Any other setting becomes its text.
nlohmann::ordered_json symbol_settings_json(const std::vector<SymbolSetting>& settings);

}  // namespace fxopt
