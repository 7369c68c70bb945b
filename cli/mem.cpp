// fxopt mem: the peaks, and what is live at the ideal one.

#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/report/json.h"
#include "cli/report/memory.h"
#include "cli/report/table.h"
#include "core/text.h"
#include "ir/io/control_deps.h"

namespace fxopt {
namespace {

struct MemFlags {
  std::vector<std::string> inputs;
  std::string graph;
  size_t top = 20;
  size_t module_depth = 2;
  std::vector<std::string> symbols;
  std::string budget;
  std::string alloc_conf;
  std::string device_memory;
  bool free_inputs = false;
};

struct SymbolValue {
  std::string name;
  int64_t value = 0;
};

Result<std::vector<SymbolValue>> parse_symbols(const std::vector<std::string>& texts) {
  std::vector<SymbolValue> symbols;
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
        std::any_of(symbols.begin(), symbols.end(), [&name](const SymbolValue& symbol) { return symbol.name == name; });
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
Result<SymbolValues> bind_symbols(Module& module, const std::vector<SymbolValue>& symbols, const std::string& file) {
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
  for (const SymbolValue& symbol : symbols) {
    const StringId id = module.strings.find(symbol.name);
    if (!id.is_valid() || !is_symbol[id]) {
      Error error{ErrorCode::kUnknownNode,
                  "there is no symbol '" + symbol.name + "'",
                  suggestion(symbol.name, names, names.empty() ? "all sizes of this file are plain numbers" : ""),
                  {}};
      error.where.file = shown_input(file);
      return error;
    }
    values[id] = symbol.value;
  }
  for (const Symbol& symbol : module.symbols) {
    const SymbolValues::const_iterator given = values.find(symbol.name);
    if (given == values.end() || is_in_range(symbol, given->second)) continue;
    return out_of_range(module, symbol, given->second, file);
  }
  return values;
}

// The answer to --budget for one graph.
void check_budget(Console& console, const GraphMemory& memory, int64_t budget, const std::string& path) {
  Where where;
  where.file = shown_input(path);
  where.graph = memory.graph;
  if (memory.peak_bytes() > budget) {
    where.node = memory.devices.front().node;
    console.error(
        {ErrorCode::kBudgetExceeded,
         "the ideal peak of " + bytes_text(memory.peak_bytes()) + " is above the budget of " + bytes_text(budget),
         "the peak is reached at this node; `fxopt opt` with sac and remat lowers it", where});
  } else if (memory.unknown > 0) {
    if (!memory.unknown_nodes.empty()) where.node = memory.unknown_nodes.front();
    console.error({ErrorCode::kUnknownSize,
                   "the budget cannot be checked: " + count_text(memory.unknown, "storage") + " of unknown size",
                   "give the symbols values with --symbol NAME=VALUE", where});
  }
}

struct MemPlan {
  std::vector<SymbolValue> symbols;
  std::optional<int64_t> budget;
  AllocatorConfig allocator;
  std::optional<int64_t> device_bytes;
};

Result<int64_t> bytes_option(const std::string& option, const std::string& text) {
  const std::optional<int64_t> bytes = parse_bytes(text);
  if (bytes.has_value()) return *bytes;
  return Error{ErrorCode::kBadOptionValue,
               option + " takes a number of bytes, not '" + text + "'",
               "write it as in 70GiB, 70GB or 75161927680; GiB is 2^30 and GB is 10^9",
               {}};
}

Result<MemPlan> make_plan(const MemFlags& flags) {
  MemPlan plan;
  const Status inputs = check_inputs(flags.inputs);
  if (!inputs.ok()) return inputs.error();
  Result<std::vector<SymbolValue>> symbols = parse_symbols(flags.symbols);
  if (!symbols.ok()) return std::move(symbols).error();
  plan.symbols = std::move(*symbols);
  Result<AllocatorConfig> allocator = parse_allocator_config(flags.alloc_conf);
  if (!allocator.ok()) return std::move(allocator).error();
  plan.allocator = std::move(*allocator);
  if (!flags.budget.empty()) {
    const Result<int64_t> bytes = bytes_option("--budget", flags.budget);
    if (!bytes.ok()) return bytes.error();
    plan.budget = *bytes;
  }
  if (!flags.device_memory.empty()) {
    const Result<int64_t> bytes = bytes_option("--device-memory", flags.device_memory);
    if (!bytes.ok()) return bytes.error();
    plan.device_bytes = *bytes;
  }
  return plan;
}

void measure(Console& console, const MemFlags& flags, const MemPlan& plan, const std::string& path,
             nlohmann::ordered_json& file) {
  const std::unique_ptr<Module> module = load_input(console, path);
  if (module == nullptr) return;
  if (!is_valid_input(console, *module, path)) return;
  lower_control_deps(*module);
  const Result<SymbolValues> symbols = bind_symbols(*module, plan.symbols, path);
  if (!symbols.ok()) return console.error(symbols.error());
  const Result<std::vector<const Graph*>> graphs = select_graphs(*module, flags.graph, shown_input(path));
  if (!graphs.ok()) return console.error(graphs.error());
  const MemoryView view{
      {*symbols, flags.free_inputs, true}, flags.top, flags.module_depth, plan.allocator, plan.device_bytes};
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  print_file_title(console.product(), flags.inputs, path);
  for (const Graph* graph : *graphs) {
    const GraphMemory memory = describe_memory(*graph, view);
    print_memory(console.product(), memory);
    list.push_back(memory_json(memory));
    if (plan.budget.has_value()) {
      check_budget(console, memory, *plan.budget, path);
    } else if (memory.unknown > 0) {
      Where where;
      where.file = shown_input(path);
      where.graph = memory.graph;
      console.warning("unknown-sizes", where,
                      count_text(memory.unknown, "storage") +
                          " of unknown size, so each peak is a lower bound; give "
                          "symbols values with --symbol");
    }
  }
  file["graphs"] = std::move(list);
}

void run_mem(Console& console, const MemFlags& flags) {
  console.result()["files"] = nlohmann::ordered_json::array();
  const Result<MemPlan> plan = make_plan(flags);
  if (!plan.ok()) return console.error(plan.error());
  if (plan->budget.has_value()) console.result()["budget_bytes"] = *plan->budget;
  for_each_input(console, flags.inputs, [&](size_t i, nlohmann::ordered_json& file) {
    measure(console, flags, *plan, flags.inputs[i], file);
  });
}

}  // namespace

CommandBody declare_mem(CLI::App& app) {
  const std::shared_ptr<MemFlags> flags = std::make_shared<MemFlags>();
  app.add_option("IN", flags->inputs, "graph files; '-' is standard input")->type_name("IN")->required();
  app.add_option("--graph", flags->graph, "measure this graph (default: all but those that ops run)")
      ->type_name("NAME");
  app.add_option("--top", flags->top, "list the N largest storages at the peak (default: 20)")->type_name("N");
  app.add_option("--module-depth", flags->module_depth, "group by the first N parts of the module path (default: 2)")
      ->type_name("N");
  app.add_option("--symbol", flags->symbols, "a symbol's value, in place of the file's hint; repeatable")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--budget", flags->budget, "exit with 5 when a peak is above this: 70GiB, 70GB, or bytes")
      ->type_name("BYTES");
  app.add_option("--alloc-conf", flags->alloc_conf,
                 "settings of the caching allocator, as PYTORCH_ALLOC_CONF has them; segments are run both ways")
      ->type_name("CONF");
  app.add_option("--device-memory", flags->device_memory,
                 "what the device has for the allocator: says where memory runs out (default: no limit)")
      ->type_name("BYTES");
  app.add_flag("--free-inputs", flags->free_inputs, "inputs end at their last use, as if each were donated");
  return [flags](Console& console) { run_mem(console, *flags); };
}

}  // namespace fxopt
