#include "cli/symbols.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/files.h"
#include "core/text.h"
#include "ir/alias/sizes.h"

namespace fxopt {
namespace {

constexpr const char* kHowTo = "write it as in --symbol s0=4096, s0=max or s0=2..64; 's*=4096' sets several symbols";

using Kind = SymbolSetting::Kind;

Error bad_value(const SymbolSetting& setting, const std::string& what, std::string hint) {
  return bad_value_error("--symbol " + setting.text + what, std::move(hint));
}

// Parses LOW..HIGH, or one number for both ends. Returns false for any other text.
bool parse_range(std::string_view text, SymbolSetting& setting) {
  const size_t dots = text.find("..");
  setting.kind = dots == std::string_view::npos ? Kind::kValue : Kind::kRange;
  const std::string_view low = text.substr(0, dots);
  const std::string_view high = setting.kind == Kind::kValue ? low : text.substr(dots + 2);
  setting.low = parse_int64(low);
  setting.high = parse_int64(high);
  if (setting.kind == Kind::kValue) return setting.low.has_value();
  const bool is_text = (!low.empty() && !setting.low.has_value()) || (!high.empty() && !setting.high.has_value());
  return !is_text && !(low.empty() && high.empty());
}

Result<SymbolSetting> parse_setting(const std::string& text) {
  SymbolSetting setting;
  setting.text = text;
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) {
    return bad_value_error("--symbol takes a name and a value, not '" + text + "'", kHowTo);
  }
  setting.name = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  if (value == "min" || value == "max") {
    setting.kind = value == "min" ? Kind::kMin : Kind::kMax;
  } else if (!parse_range(value, setting)) {
    return bad_value(setting, ": '" + value + "' is not an integer, a range, min or max", kHowTo);
  }
  if (setting.low.value_or(0) < 0 || setting.high.value_or(0) < 0) {
    return bad_value(setting, " is negative, but symbols are sizes", kHowTo);
  }
  if (setting.low.has_value() && setting.high.has_value() && *setting.low > *setting.high) {
    return bad_value(setting, " has its larger end first", "write the smaller end first, as in --symbol s0=2..64");
  }
  return setting;
}

// Returns the names of all symbols of a module. Declared symbols come first.
std::vector<StringId> symbol_names(const Module& module) {
  std::vector<StringId> names;
  IdMap<StringId, bool> is_known;
  const auto add = [&](StringId name) {
    if (is_known[name]) return;
    is_known[name] = true;
    names.push_back(name);
  };
  for (const Symbol& symbol : module.symbols) add(symbol.name);
  for (size_t i = 0; i < module.exprs.size(); ++i) {
    const Expr& expr = module.exprs[ExprId(i)];
    if (expr.kind == ExprKind::kSymbol) add(expr.name);
  }
  return names;
}

// Applies settings to the symbols of one module.
class SymbolBinder {
 public:
  SymbolBinder(const std::vector<SymbolSetting>& settings, const Module& module)
      : settings_(settings),
        module_(module),
        names_(symbol_names(module)),
        ranges_(symbol_ranges(module, {})),
        hints_(symbol_values(module, {})) {}

  Result<BoundSymbols> run() {
    for (const SymbolSetting& setting : settings_) {
      if (const Status status = check(setting); !status.ok()) return status.error();
    }
    for (const StringId name : names_) {
      const SymbolSetting* setting = setting_of(module_.text(name));
      const Status status = setting == nullptr ? ok_status() : bind(*setting, name);
      if (!status.ok()) return status.error();
    }
    return std::move(result_);
  }

 private:
  const SymbolSetting* setting_of(std::string_view symbol) const {
    const SymbolSetting* found = nullptr;
    for (const SymbolSetting& setting : settings_) {
      if (setting.name == symbol) return &setting;
      if (matches_pattern(symbol, setting.name)) found = &setting;
    }
    return found;
  }

  // Fails if the module lacks the name of the setting.
  Status check(const SymbolSetting& setting) const {
    if (names_.empty() && setting.name.find('*') != std::string::npos) return ok_status();
    std::vector<std::string_view> texts;
    for (const StringId name : names_) {
      if (matches_pattern(module_.text(name), setting.name)) return ok_status();
      texts.push_back(module_.text(name));
    }
    const std::string hint =
        suggestion(setting.name, texts, texts.empty() ? "all sizes of this file are plain numbers" : "");
    return Error{ErrorCode::kUnknownNode, "there is no symbol '" + setting.name + "'", hint, {}};
  }

  Status bind(const SymbolSetting& setting, StringId name) {
    const SymbolRanges::const_iterator known = ranges_.find(name);
    const ValueRange file = known == ranges_.end() ? ValueRange() : known->second;
    if (setting.kind == Kind::kMin || setting.kind == Kind::kMax) return bind_end(setting, name, file);
    if (setting.low.value_or(file.min) < file.min || setting.high.value_or(file.max) > file.max ||
        setting.low.value_or(file.min) > setting.high.value_or(file.max)) {
      return out_of_range(setting, name, file);
    }
    if (setting.kind == Kind::kValue) {
      result_.values[name] = *setting.low;
      return ok_status();
    }
    const ValueRange range = {setting.low.value_or(file.min), setting.high.value_or(file.max)};
    result_.ranges[name] = range;
    const SymbolValues::const_iterator hint = hints_.find(name);
    if (hint == hints_.end()) return ok_status();
    const int64_t nearest = std::clamp(hint->second, range.min, range.max);
    if (nearest != hint->second) result_.values[name] = nearest;
    return ok_status();
  }

  Status bind_end(const SymbolSetting& setting, StringId name, ValueRange file) {
    const bool is_min = setting.kind == Kind::kMin;
    const std::string symbol(module_.text(name));
    if (!(is_min ? file.has_min() : file.has_max())) {
      return bad_value(setting,
                       ": for '" + symbol + "', the file records no " + (is_min ? "smallest" : "largest") + " value",
                       "give it a number, as in --symbol " + symbol + "=4096; a name overrides a pattern");
    }
    result_.values[name] = is_min ? file.min : file.max;
    return ok_status();
  }

  Error out_of_range(const SymbolSetting& setting, StringId name, ValueRange file) const {
    std::string range;
    if (file.has_min()) range += " from " + std::to_string(file.min);
    if (file.has_max()) range += " up to " + std::to_string(file.max);
    const std::string of = matches_exactly(setting, name) ? "the symbol's range"
                                                          : "the range of '" + std::string(module_.text(name)) + "'";
    return bad_value(setting, " is outside of " + of + ", which is" + range,
                     "give a value in this range, for which the file was traced");
  }

  bool matches_exactly(const SymbolSetting& setting, StringId name) const { return module_.text(name) == setting.name; }

  const std::vector<SymbolSetting>& settings_;
  const Module& module_;
  std::vector<StringId> names_;
  SymbolRanges ranges_;
  SymbolValues hints_;
  BoundSymbols result_;
};

}  // namespace

Result<std::vector<SymbolSetting>> parse_symbol_settings(const std::vector<std::string>& texts) {
  std::vector<SymbolSetting> settings;
  for (const std::string& text : texts) {
    Result<SymbolSetting> setting = parse_setting(text);
    if (!setting.ok()) return setting.error();
    const bool is_known = std::any_of(settings.begin(), settings.end(),
                                      [&setting](const SymbolSetting& other) { return other.name == setting->name; });
    if (is_known) {
      return usage_error("--symbol gives '" + setting->name + "' two values",
                         "a symbol has one value in a call; make two calls for two values");
    }
    settings.push_back(std::move(*setting));
  }
  return settings;
}

Result<BoundSymbols> bind_symbols(const std::vector<SymbolSetting>& settings, const Module& module,
                                  const std::string& file) {
  if (settings.empty()) return BoundSymbols();
  Result<BoundSymbols> bound = SymbolBinder(settings, module).run();
  if (bound.ok()) return bound;
  Error error = bound.error();
  error.where.file = shown_input(file);
  return error;
}

nlohmann::ordered_json symbol_settings_json(const std::vector<SymbolSetting>& settings) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const SymbolSetting& setting : settings) {
    if (setting.kind == Kind::kValue) {
      json[setting.name] = *setting.low;
    } else {
      json[setting.name] = setting.text.substr(setting.name.size() + 1);
    }
  }
  return json;
}

}  // namespace fxopt
