#include "cli/files.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <utility>

#include "cli/console.h"
#include "cli/report/json.h"
#include "core/check.h"
#include "core/file.h"
#include "core/text.h"
#include "ir/check/verify.h"

namespace fxopt {
std::string shown_input(const std::string& path) { return path == "-" ? "standard input" : path; }

Status check_inputs(const std::vector<std::string>& inputs) {
  if (std::count(inputs.begin(), inputs.end(), "-") <= 1) return ok_status();
  return Error{ErrorCode::kUsage, "standard input is given twice", "it can be read once", {}};
}

std::unique_ptr<Module> load_input(Console& console, const std::string& path) {
  const Result<std::string> bytes = read_file(path);
  if (!bytes.ok()) {
    console.error(bytes.error());
    return nullptr;
  }
  Result<std::unique_ptr<Module>> module = parse_module(*bytes, format_of_bytes(*bytes), shown_input(path));
  if (module.ok()) return std::move(*module);
  console.error(module.error());
  return nullptr;
}

void for_each_input(Console& console, const std::vector<std::string>& inputs, const FileWork& work) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t errors_before = console.num_errors();
    nlohmann::ordered_json file = {{"file", shown_input(inputs[i])}, {"ok", false}};
    Error error;
    error.where.file = shown_input(inputs[i]);
    bool has_failed = true;
    try {
      work(i, file);
      has_failed = false;
    } catch (const InternalError& failure) {
      error.code = ErrorCode::kInternal;
      error.message = failure.what();
      error.hint =
          "this is a mistake in fxopt; please report it with this file and the command line, which reproduce it";
    } catch (const std::bad_alloc&) {
      error.code = ErrorCode::kFileTooLarge;
      error.message = "not enough memory for this input";
    }
    if (has_failed) console.error(error);
    file["ok"] = console.num_errors() == errors_before;
    console.result()["files"].push_back(std::move(file));
  }
}

void print_file_title(std::ostream& out, const std::vector<std::string>& inputs, const std::string& path) {
  if (inputs.size() > 1) out << "# " << printable_line(shown_input(path)) << '\n';
}

bool is_valid_input(Console& console, const Module& module, const std::string& path) {
  std::vector<Error> broken = verify(module);
  for (Error& error : broken) {
    error.where.file = shown_input(path);
    console.error(error, ExitCode::kInputRejected);
  }
  return broken.empty();
}

std::vector<const Graph*> top_level_graphs(const Module& module) {
  std::vector<const Graph*> graphs;
  for (size_t i = 0; i < module.num_graphs(); ++i) {
    const Graph& graph = module.graph(GraphId(i));
    const bool is_subgraph = graph.owner.is_valid() || graph.kind == GraphKind::kSubgraph;
    if (i == 0 || !is_subgraph) graphs.push_back(&graph);
  }
  return graphs;
}

std::string bare_name(const std::string& name, char sigil) {
  return name.size() > 1 && name.front() == sigil ? name.substr(1) : name;
}

Result<std::vector<const Graph*>> select_graphs(const Module& module, const std::string& given,
                                                const std::string& file) {
  if (given.empty()) return top_level_graphs(module);
  const std::string name = bare_name(given, '@');
  std::vector<std::string_view> names;
  for (size_t i = 0; i < module.num_graphs(); ++i) {
    const Graph& graph = module.graph(GraphId(i));
    names.push_back(module.text(graph.name()));
    if (names.back() == name) return std::vector<const Graph*>{&graph};
  }
  Error error{ErrorCode::kUnknownNode,
              "there is no graph '" + name + "'",
              suggestion(name, names, "`fxopt show --summary` lists the graphs"),
              {}};
  error.where.file = file;
  return error;
}

std::optional<int64_t> parse_bytes(std::string_view text) {
  struct ByteUnit {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array<ByteUnit, 10> kUnits = {{{"KiB", 1024.0},
                                                       {"MiB", 1048576.0},
                                                       {"GiB", 1073741824.0},
                                                       {"TiB", 1099511627776.0},
                                                       {"KB", 1e3},
                                                       {"kB", 1e3},
                                                       {"MB", 1e6},
                                                       {"GB", 1e9},
                                                       {"TB", 1e12},
                                                       {"B", 1.0}}};
  double factor = 1;
  for (const ByteUnit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    text.remove_suffix(unit.name.size());
    factor = unit.bytes;
    break;
  }
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (const std::optional<int64_t> whole = parse_int64(text); whole.has_value() && factor == 1) {
    return *whole >= 0 ? whole : std::nullopt;
  }
  const std::optional<double> number = parse_double(text);
  if (!number.has_value() || !std::isfinite(*number) || *number < 0) return std::nullopt;
  const double bytes = std::floor(*number * factor);
  if (bytes >= 9223372036854775808.0) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates,
                       std::string_view otherwise) {
  const std::string_view near = closest_name(name, candidates);
  return near.empty() ? std::string(otherwise) : "did you mean '" + std::string(near) + "'?";
}

}  // namespace fxopt
