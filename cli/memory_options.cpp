#include "cli/memory_options.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/device.h"
#include "cli/files.h"
#include "cli/report/table.h"
#include "core/text.h"
#include "ir/analysis/complete_values.h"
#include "ir/io/control_deps.h"

namespace fxopt {
namespace {

using NamedValue = std::pair<std::string, int64_t>;

Result<std::vector<NamedValue>> parse_symbols(const std::vector<std::string>& texts) {
  std::vector<NamedValue> symbols;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    const std::optional<int64_t> value =
        equals == std::string::npos ? std::nullopt : parse_int64(std::string_view(text).substr(equals + 1));
    if (!value.has_value() || equals == 0) {
      return Error{ErrorCode::kBadOptionValue,
                   "--symbol takes a name and an integer, not '" + text + "'",
                   "write it as in --symbol s0=4096",
                   {}};
    }
    const std::string name = text.substr(0, equals);
    if (*value < 0) {
      return Error{ErrorCode::kBadOptionValue,
                   "--symbol " + text + " is negative, and symbols are sizes",
                   "write it as in --symbol " + name + "=4096",
                   {}};
    }
    const bool is_known =
        std::any_of(symbols.begin(), symbols.end(), [&name](const NamedValue& symbol) { return symbol.first == name; });
    if (is_known) {
      return Error{ErrorCode::kUsage,
                   "--symbol gives '" + name + "' two values",
                   "a symbol has one value in a call; two calls answer both",
                   {}};
    }
    symbols.push_back({name, *value});
  }
  return symbols;
}

bool is_in_range(const Symbol& symbol, int64_t value) {
  return value >= symbol.min.value_or(INT64_MIN) && value <= symbol.max.value_or(INT64_MAX);
}

Error out_of_range(const Module& module, const Symbol& symbol, int64_t value, const std::string& file) {
  std::string range;
  if (symbol.min.has_value()) range += " from " + std::to_string(*symbol.min);
  if (symbol.max.has_value()) range += " up to " + std::to_string(*symbol.max);
  const std::string name(module.text(symbol.name));
  Error error{ErrorCode::kBadOptionValue,
              "--symbol " + name + "=" + std::to_string(value) + " is outside of the symbol's range, which is" + range,
              "the file was traced for values in this range: give one of them",
              {}};
  error.where.file = shown_input(file);
  return error;
}

// The symbols' values by the module's names. A name the module does not have is the user's slip.
Result<SymbolValues> bind_symbols(Module& module, const std::vector<NamedValue>& symbols, const std::string& file) {
  SymbolValues values;
  std::vector<std::string_view> names;
  IdMap<StringId, bool> is_symbol;
  for (size_t i = 0; i < module.exprs.size(); ++i) {
    const Expr& expr = module.exprs[ExprId(i)];
    if (expr.kind != ExprKind::kSymbol || is_symbol[expr.name]) continue;
    is_symbol[expr.name] = true;
    names.push_back(module.text(expr.name));
  }
  for (const Symbol& symbol : module.symbols) {
    if (is_symbol[symbol.name]) continue;
    is_symbol[symbol.name] = true;
    names.push_back(module.text(symbol.name));
  }
  for (const NamedValue& symbol : symbols) {
    const StringId id = module.strings.find(symbol.first);
    if (!id.is_valid() || !is_symbol[id]) {
      Error error{ErrorCode::kUnknownNode,
                  "there is no symbol '" + symbol.first + "'",
                  suggestion(symbol.first, names, names.empty() ? "all sizes of this file are plain numbers" : ""),
                  {}};
      error.where.file = shown_input(file);
      return error;
    }
    values[id] = symbol.second;
  }
  for (const Symbol& symbol : module.symbols) {
    const SymbolValues::const_iterator given = values.find(symbol.name);
    if (given == values.end() || is_in_range(symbol, given->second)) continue;
    return out_of_range(module, symbol, given->second, file);
  }
  return values;
}

// One of the words an option takes.
template <class Value>
Result<Value> choice(const std::string& option, const std::string& text,
                     const std::vector<std::pair<std::string_view, Value>>& choices) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : choices) {
    if (name == text) return value;
    names.push_back(name);
  }
  return Error{
      ErrorCode::kBadOptionValue,
      option + " takes " + join(std::vector<std::string>(names.begin(), names.end()), " or ") + ", not '" + text + "'",
      suggestion(text, names, ""),
      {}};
}

Result<std::optional<SteadyState>> steady_state(const MemoryFlags& flags) {
  const Result<OptimizerState> optimizer = choice<OptimizerState>(
      "--optimizer", flags.optimizer,
      {{"adam", OptimizerState::kAdam}, {"momentum", OptimizerState::kMomentum}, {"none", OptimizerState::kNone}});
  if (!optimizer.ok()) return optimizer.error();
  const Result<bool> keep = choice<bool>("--gradients", flags.gradients, {{"kept", true}, {"freed", false}});
  if (!keep.ok()) return keep.error();
  if (!flags.steady && (*optimizer != OptimizerState::kAdam || !*keep)) {
    return Error{ErrorCode::kUsage,
                 "--optimizer and --gradients are about a step that is not the first",
                 "give --steady, too",
                 {}};
  }
  if (!flags.steady) return std::optional<SteadyState>();
  return std::optional<SteadyState>(SteadyState{*optimizer, *keep});
}

}  // namespace

void declare_memory_flags(CLI::App& app, MemoryFlags& flags) {
  app.add_option("--top", flags.top, "list the N largest storages at the peak (default: 20)")->type_name("N");
  app.add_option("--module-depth", flags.module_depth, "group modules by the first N parts of their path (default: 3)")
      ->type_name("N");
  app.add_option("--symbol", flags.symbols, "a symbol's value, in place of the file's hint; repeatable")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--alloc-conf", flags.alloc_conf,
                 "settings of the caching allocator, as PYTORCH_ALLOC_CONF has them; segments are run both ways")
      ->type_name("CONF");
  app.add_option("--device-memory", flags.device_memory,
                 "what the device has for the allocator: says where memory runs out (default: no limit)")
      ->type_name("BYTES");
  app.add_option("--device", flags.device,
                 "profiles that tell kernels' hidden memory, such as h100, or files; `fxopt help devices`")
      ->type_name("PROFILE");
  app.add_option("--input-lifetime", flags.input_lifetime,
                 "caller: inputs live throughout (default); boxed: those that no step keeps end at their last use")
      ->type_name("WHO");
  app.add_flag("--steady", flags.steady,
               "a step that is not the first: gradients and optimizer state alive, segments as steps leave them");
  app.add_option("--optimizer", flags.optimizer,
                 "with --steady, state per parameter: adam (default), momentum, none; not where inputs hold it")
      ->type_name("KIND");
  app.add_option("--gradients", flags.gradients,
                 "with --steady, the last step's gradients: kept (default), or freed before the step")
      ->type_name("HOW");
}

void warn_of_memory(Console& console, const std::string& path, const GraphMemory& memory) {
  Where where;
  where.file = shown_input(path);
  where.graph = memory.graph;
  if (memory.unknown > 0) {
    console.warning("unknown-sizes", where,
                    count_text(memory.unknown, "storage") +
                        " of unknown size, so each peak is a lower bound; give symbols values with --symbol");
  }
  size_t calls = 0;
  for (const DeviceMemory& device : memory.devices) calls += device.unknown_hidden.size();
  if (calls > 0) {
    console.warning("unknown-hidden-memory", where,
                    "the hidden memory of " + count_text(calls, "call") +
                        " is unknown, so peaks beside the ideal one are lower bounds");
  }
  if (memory.is_steady && !memory.has_gradients) {
    console.warning("no-gradients", where,
                    "no gradient of a parameter leaves the graph, so --steady adds neither gradients nor optimizer "
                    "state");
  }
}

void prepare_for_memory(Module& module) {
  lower_control_deps(module);
  complete_values(module);
}

Result<int64_t> bytes_option(const std::string& option, const std::string& text) {
  const std::optional<int64_t> bytes = parse_bytes(text);
  if (bytes.has_value()) return *bytes;
  return Error{ErrorCode::kBadOptionValue,
               option + " takes a number of bytes, not '" + text + "'",
               "write it as in 70GiB, 70GB or 75161927680; GiB is 2^30 and GB is 10^9",
               {}};
}

Result<MemoryPlan> MemoryPlan::make(const MemoryFlags& flags) {
  MemoryPlan plan;
  plan.flags_ = flags;
  Result<std::vector<NamedValue>> symbols = parse_symbols(flags.symbols);
  if (!symbols.ok()) return std::move(symbols).error();
  plan.symbols_ = std::move(*symbols);
  Result<AllocatorConfig> allocator = parse_allocator_config(flags.alloc_conf);
  if (!allocator.ok()) return std::move(allocator).error();
  plan.allocator_ = std::move(*allocator);
  if (!flags.device_memory.empty()) {
    const Result<int64_t> bytes = bytes_option("--device-memory", flags.device_memory);
    if (!bytes.ok()) return bytes.error();
    plan.device_bytes_ = *bytes;
  }
  const Result<InputLifetime> lifetime = choice<InputLifetime>(
      "--input-lifetime", flags.input_lifetime, {{"caller", InputLifetime::kCaller}, {"boxed", InputLifetime::kBoxed}});
  if (!lifetime.ok()) return lifetime.error();
  plan.inputs_ = *lifetime;
  Result<std::optional<SteadyState>> steady = steady_state(flags);
  if (!steady.ok()) return steady.error();
  plan.steady_ = *steady;
  Result<std::unique_ptr<DeviceProfile>> profile = load_device_profile(flags.device);
  if (!profile.ok()) return std::move(profile).error();
  plan.profile_ = std::move(*profile);
  return plan;
}

Result<MemoryView> MemoryPlan::view(Module& module, const std::string& file) const {
  const Result<SymbolValues> symbols = bind_symbols(module, symbols_, file);
  if (!symbols.ok()) return symbols.error();
  MemoryView view;
  view.options = {*symbols, inputs_, true};
  view.trace = {flags_.device.empty() ? nullptr : profile_.get(), steady_};
  view.top = flags_.top;
  view.module_depth = flags_.module_depth;
  view.allocator = allocator_;
  view.device_bytes = device_bytes_;
  return view;
}

nlohmann::ordered_json MemoryPlan::json() const {
  nlohmann::ordered_json symbols = nlohmann::ordered_json::object();
  for (const auto& [name, value] : symbols_) symbols[name] = value;
  return {{"device", profile_->name},
          {"alloc_conf", flags_.alloc_conf},
          {"device_memory", flags_.device_memory},
          {"input_lifetime", flags_.input_lifetime},
          {"steady", flags_.steady},
          {"optimizer", flags_.steady ? flags_.optimizer : ""},
          {"gradients", flags_.steady ? flags_.gradients : ""},
          {"symbols", symbols}};
}

}  // namespace fxopt
