#include "cli/files.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/crash_guard.h"
#include "cli/print/table.h"
#include "cli/products.h"
#include "core/bytes.h"
#include "core/check.h"
#include "core/file.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "ir/check/verify.h"
#include "ir/graph/top_level.h"

namespace fxopt {
namespace {

// Prints broken invariants. Returns true if there are none.
bool is_whole(Console& console, std::vector<Error> broken, const std::string& path) {
  for (Error& error : broken) {
    error.where.file = shown_input(path);
    console.error(error, ExitCode::kInputRejected);
  }
  return broken.empty();
}

// Returns the absolute path, with '/' between parts and without "." and "..". Standard input stays
// "-".
std::string absolute_path(const std::string& path) {
  return path == "-" ? path : std::filesystem::absolute(path).lexically_normal().generic_string();
}

// Returns the last `count` parts of a path, or the whole path if it has fewer parts.
std::string last_parts(const std::string& path, size_t count) {
  size_t at = path.size();
  for (; count > 0 && at != std::string::npos; --count) at = at == 0 ? std::string::npos : path.rfind('/', at - 1);
  return at == std::string::npos ? path : path.substr(at + 1);
}

constexpr const char* kPleaseReport =
    "this is a mistake in fxopt; please report it with this file and the command line, which reproduce it";

// Returns the error for an input whose process was ended by `signal`.
Error crash_error(int signal) {
  const std::string text = "signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  if (signal == SIGKILL) {
    return {ErrorCode::kFileTooLarge,
            "the process that worked on this input was ended by " + text,
            "the kernel kills processes when memory runs out: run this input with more memory",
            {}};
  }
  return {ErrorCode::kInternal, "fxopt crashed on this input: " + text, kPleaseReport, {}};
}

// Calls `work`. Returns an error if `work` throws an internal error or runs out of memory.
std::optional<Error> failure_of(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const InternalError& failure) {
    return Error{ErrorCode::kInternal, failure.what(), kPleaseReport, {}};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kFileTooLarge, "not enough memory for this input", "", {}};
  }
}

}  // namespace

std::string shown_input(const std::string& path) { return path == "-" ? "standard input" : path; }

Where where_in(std::string file, std::string_view graph, std::string_view node) {
  Where where;
  where.file = std::move(file);
  where.graph = graph;
  where.node = node;
  return where;
}

Status check_inputs(const std::vector<std::string>& inputs) {
  if (std::count(inputs.begin(), inputs.end(), "-") <= 1) return ok_status();
  return usage_error("standard input is given twice", "standard input can be read only once");
}

std::unique_ptr<Module> load_input(Console& console, const std::string& path, std::string& bytes) {
  Stopwatch watch;
  Result<std::string> read = read_file(path);
  if (!console.is_ok(read)) return nullptr;
  bytes = *std::move(read);
  const Format format = format_of_bytes(bytes);
  Result<std::unique_ptr<Module>> parsed = parse_module(bytes, format, shown_input(path));
  if (!console.is_ok(parsed)) return nullptr;
  std::unique_ptr<Module> module = *std::move(parsed);
  console.stage("read " + shown_input(path) + ": " + bytes_text(static_cast<int64_t>(bytes.size())) + ", " +
                    std::string(format_name(format)) + ", " + count_text(module->num_graphs(), "graph") + ", " +
                    count_text(module->num_nodes(), "node"),
                watch.lap());
  return module;
}

std::unique_ptr<Module> load_input(Console& console, const std::string& path) {
  std::string bytes;
  return load_input(console, path, bytes);
}

void for_each_input(Console& console, const std::vector<std::string>& inputs, const FileWork& work,
                    const FileEnd& ended) {
  console.flush();
  CrashGuard guard(console.may_fork() && (inputs.size() > 1 || console.wants_json()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    console.flush();
    const int signal = guard.begin();
    const size_t errors_before = console.num_errors();
    const std::string shown = shown_input(inputs[i]);
    nlohmann::ordered_json file = {{"file", shown}, {"ok", false}};
    std::optional<Error> failure = signal != 0 ? crash_error(signal) : failure_of([&] { work(i, file); });
    if (signal == 0) guard.end();
    if (failure.has_value()) {
      failure->where.file = shown;
      console.error(*failure);
    }
    file["ok"] = console.num_errors() == errors_before;
    console.result()["files"].push_back(std::move(file));
    if (ended) ended(i, errors_before);
  }
}

void print_file_title(std::ostream& out, const std::vector<std::string>& inputs, const std::string& path) {
  if (inputs.size() > 1) out << "# " << printable_line(shown_input(path)) << '\n';
}

bool is_valid_input(Console& console, const Module& module, const std::string& path) {
  Stopwatch watch;
  std::vector<Error> broken = verify(module);
  console.stage("verified " + shown_input(path), watch.lap());
  return is_whole(console, std::move(broken), path);
}

Prepared prepare_logged(Console& console, Module& module, const std::string& path) {
  Stopwatch watch;
  Prepared prepared = prepare(module);
  console.stage("verified " + shown_input(path), prepared.verify_seconds);
  if (prepared.broken.empty()) {
    console.stage("prepared " + shown_input(path) + ": " + count_text(prepared.lowered.done, "call") + " lowered, " +
                      count_text(prepared.completed, "value") + " completed",
                  watch.lap() - prepared.verify_seconds);
  }
  return prepared;
}

std::optional<ControlDepsResult> prepare_input(Console& console, Module& module, const std::string& path) {
  Prepared prepared = prepare_logged(console, module, path);
  return is_whole(console, std::move(prepared.broken), path) ? std::optional(prepared.lowered) : std::nullopt;
}

std::unique_ptr<Module> import_input(Console& console, const std::string& path) {
  std::unique_ptr<Module> module = load_input(console, path);
  const bool is_ready = module != nullptr && prepare_input(console, *module, path).has_value();
  return is_ready ? std::move(module) : nullptr;
}

std::vector<std::string> distinct_names(const std::vector<std::string>& paths) {
  std::vector<std::string> whole, names(paths.size());
  for (const std::string& path : paths) whole.push_back(absolute_path(path));
  std::vector<bool> is_done(paths.size(), false);
  for (size_t left = paths.size(), parts = 1; left > 0; ++parts) {
    std::map<std::string, std::set<std::string>> files;  // paths by their last parts
    for (size_t i = 0; i < paths.size(); ++i) {
      files[last_parts(whole[i], parts)].insert(whole[i]);
    }
    for (size_t i = 0; i < paths.size(); ++i) {
      const std::string name = last_parts(whole[i], parts);
      if (is_done[i] || files.at(name).size() > 1) continue;
      names[i] = name;
      is_done[i] = true;
      --left;
    }
  }
  return names;
}

bool ends_with_path(const std::string& path, const std::string& name) {
  const std::string whole = absolute_path(path);
  return whole == name || whole.ends_with("/" + name);
}

std::string bare_name(const std::string& name, char sigil) {
  return name.size() > 1 && name.front() == sigil ? name.substr(1) : name;
}

Error unknown_node(const std::string& name, const std::vector<std::string_view>& names, const std::string& file) {
  return {ErrorCode::kUnknownNode, "there is no node '" + name + "'",
          suggestion(name, names, "`fxopt show` prints the names"), where_in(file)};
}

Result<std::vector<const Graph*>> select_graphs(const Module& module, const std::string& given,
                                                const std::string& file) {
  if (given.empty()) {
    std::vector<const Graph*> graphs;
    for (const GraphId id : top_level_graphs(module)) graphs.push_back(&module.graph(id));
    return graphs;
  }
  const std::string name = bare_name(given, '@');
  std::vector<std::string_view> names;
  for (const GraphId id : module.graphs()) {
    const Graph& graph = module.graph(id);
    names.push_back(module.text(graph.name()));
    if (names.back() == name) return std::vector<const Graph*>{&graph};
  }
  return Error{ErrorCode::kUnknownNode, "there is no graph '" + name + "'",
               suggestion(name, names, "`fxopt show --summary` lists the graphs"), where_in(file)};
}

}  // namespace fxopt
