#include "cli/files.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <new>
#include <set>
#include <system_error>
#include <utility>

#include "cli/console.h"
#include "core/check.h"
#include "core/file.h"
#include "core/text.h"
#include "ir/check/verify.h"

namespace fxopt {
namespace {

struct FormatName {
  Format format;
  std::string_view name;
};
constexpr FormatName kFormats[] = {{Format::kPb, "pb"}, {Format::kText, "fxg"}, {Format::kJson, "json"}};

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return path.ends_with('/') || std::filesystem::is_directory(path, ignored);
}

// The file name of `input`, with the extension of `format` in place of its own.
std::string product_name(const std::string& input, std::optional<Format> format) {
  std::string name = std::filesystem::path(input).filename().string();
  if (!format.has_value()) return name;
  if (name.ends_with(".zst")) name.resize(name.size() - 4);
  if (format_of_path(name).has_value()) name.resize(name.rfind('.'));
  for (const FormatName& row : kFormats) {
    if (row.format == *format) name.append(".").append(row.name);
  }
  return name;
}

Result<std::vector<std::string>> outputs_in_folder(const std::vector<std::string>& inputs, const std::string& folder,
                                                   std::optional<Format> format) {
  std::vector<std::string> outputs;
  std::set<std::string> seen;
  for (const std::string& input : inputs) {
    if (input == "-") {
      return Error{ErrorCode::kUsage,
                   "standard input has no name, so no file in '" + folder + "' can be named after it",
                   "read it in a call of its own, with -o FILE",
                   {}};
    }
    const std::string name = product_name(input, format);
    if (!seen.insert(name).second) {
      return Error{ErrorCode::kUsage,
                   "two inputs would be written to '" + name + "' in '" + folder + "'",
                   "inputs of one call need different file names",
                   {}};
    }
    outputs.push_back((std::filesystem::path(folder) / name).string());
  }
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) {
    Error error{ErrorCode::kFileWrite, "cannot make the folder: " + failure.message(), "", {}};
    error.where.file = folder;
    return error;
  }
  return outputs;
}

}  // namespace

std::string shown_input(const std::string& path) { return path == "-" ? "standard input" : path; }

Status check_inputs(const std::vector<std::string>& inputs) {
  if (std::count(inputs.begin(), inputs.end(), "-") <= 1) return ok_status();
  return Error{ErrorCode::kUsage, "standard input is given twice", "it can be read once", {}};
}

Result<std::optional<Format>> parse_format(const std::string& text) {
  if (text.empty()) return std::optional<Format>();
  std::vector<std::string_view> names;
  for (const FormatName& row : kFormats) {
    if (row.name == text) return std::optional<Format>(row.format);
    names.push_back(row.name);
  }
  return Error{ErrorCode::kUnknownFormat,
               "'" + text + "' is not a form of a graph file",
               suggestion(text, names, "the forms are pb, fxg and json"),
               {}};
}

Result<std::vector<std::string>> plan_outputs(const std::vector<std::string>& inputs, const std::string& output,
                                              std::optional<Format> format) {
  if (output != "-" && !output.empty() && is_folder(output)) return outputs_in_folder(inputs, output, format);
  if (inputs.size() > 1) {
    return Error{ErrorCode::kUsage, "several inputs need a folder to go to", "give -o FOLDER/, with the '/'", {}};
  }
  return std::vector<std::string>{output.empty() ? "-" : output};
}

Status check_stdout_is_free(const Console& console, const std::vector<std::string>& outputs) {
  const bool is_wanted = std::find(outputs.begin(), outputs.end(), "-") != outputs.end();
  if (!is_wanted || !console.json_takes_stdout()) return ok_status();
  return Error{ErrorCode::kUsage,
               "the graph and the JSON envelope cannot both go to standard output",
               "give -o FILE, or --json=FILE",
               {}};
}

bool save_product(Console& console, const Module& module, const std::string& path, std::optional<Format> format) {
  if (path == "-") {
    const Result<std::string> bytes = print_module(module, format.value_or(Format::kText));
    if (!bytes.ok()) {
      console.error(bytes.error());
      return false;
    }
    return console.write_product(*bytes);
  }
  const Status saved = save_module(module, path, format);
  if (!saved.ok()) console.error(saved.error());
  return saved.ok();
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

void for_each_input(Console& console, const std::vector<std::string>& inputs, const std::function<void(size_t)>& work) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    Error error;
    error.where.file = shown_input(inputs[i]);
    try {
      work(i);
      continue;
    } catch (const InternalError& failure) {
      error.code = ErrorCode::kInternal;
      error.message = failure.what();
      error.hint =
          "this is a mistake in fxopt; please report it with this file and the command line, which reproduce it";
    } catch (const std::bad_alloc&) {
      error.code = ErrorCode::kFileTooLarge;
      error.message = "not enough memory for this input";
    }
    console.error(error);
  }
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

Result<std::vector<const Graph*>> select_graphs(const Module& module, const std::string& name,
                                                const std::string& file) {
  if (name.empty()) return top_level_graphs(module);
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
