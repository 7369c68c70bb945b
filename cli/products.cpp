#include "cli/products.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/files.h"
#include "core/file.h"
#include "core/stopwatch.h"

namespace fxopt {
namespace {

constexpr std::string_view kNowhere = "/dev/null";

struct FormatName {
  Format format;
  std::string_view name;
};
constexpr FormatName kFormats[] = {{Format::kPb, "pb"}, {Format::kText, "fxg"}, {Format::kJson, "json"}};

// Parses "pb", "fxg" or "json". Returns nothing for an empty text. Fails with kUnknownFormat.
Result<std::optional<Format>> parse_format(const std::string& text) {
  if (text.empty()) return std::optional<Format>();
  std::vector<std::string_view> names;
  for (const FormatName& row : kFormats) {
    if (row.name == text) return std::optional<Format>(row.format);
    names.push_back(row.name);
  }
  return Error{ErrorCode::kUnknownFormat,
               "'" + text + "' is not a graph file format",
               suggestion(text, names, "the formats are pb, fxg and json"),
               {}};
}

Result<Format> form_of(const std::string& path, std::optional<Format> format) {
  if (format.has_value()) return *format;
  if (path == "-" || is_special_file(path)) return Format::kText;
  if (const std::optional<Format> by_name = format_of_path(path)) return *by_name;
  return Error{ErrorCode::kUnknownFormat, "the format of this output cannot be derived from its name",
               "end the name in .pb, .fxg or .json, optionally followed by .zst, or give --format", where_in(path)};
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return path.ends_with('/') || std::filesystem::is_directory(path, ignored);
}

// Replaces the extension of `name` by the extension of `format`.
std::string product_name(std::string name, std::optional<Format> format) {
  if (!format.has_value()) return name;
  if (name.ends_with(".zst")) name.resize(name.size() - 4);
  if (format_of_path(name).has_value()) name.resize(name.rfind('.'));
  for (const FormatName& row : kFormats) {
    if (row.format == *format) name.append(".").append(row.name);
  }
  return name;
}

Result<std::vector<std::string>> paths_in_folder(const FileFlags& flags, std::optional<Format> format) {
  std::vector<std::string> paths;
  std::set<std::string> seen;
  const std::vector<std::string> names = distinct_names(flags.inputs);
  for (size_t i = 0; i < names.size(); ++i) {
    if (flags.inputs[i] == "-") {
      return usage_error("standard input has no name, so no file in '" + flags.output + "' can be named after it",
                         "read standard input in a separate call, with -o FILE");
    }
    // An input that is a folder fails later, with its own error. The format does not matter,
    // because nothing is written.
    const std::optional<Format> form = is_folder(flags.inputs[i]) ? Format::kPb : format;
    const std::string name = product_name(names[i], form);
    if (!seen.insert(name).second) {
      return usage_error("two inputs would be written to '" + name + "' in '" + flags.output + "'",
                         "give each input once, and in one format");
    }
    paths.push_back((std::filesystem::path(flags.output) / name).string());
  }
  return paths;
}

Result<std::vector<std::string>> product_paths(const Console& console, const FileFlags& flags,
                                               std::optional<Format> format) {
  const std::string path = flags.output.empty() || flags.output == "/dev/stdout" ? "-" : flags.output;
  if (flags.inputs.size() == 1 && (path == "-" || !is_folder(path))) return std::vector<std::string>{path};
  if (path != "-" && is_folder(path)) return paths_in_folder(flags, format);
  if (path != "-" && file_identity(path) == file_identity(std::string(kNowhere))) {
    return std::vector<std::string>(flags.inputs.size(), path);
  }
  const std::string meant = console.misread_hint(), folder = "give -o FOLDER/, with the '/'";
  const auto lost = std::find_if(flags.inputs.begin() + 1, flags.inputs.end(), [](const std::string& input) {
    std::error_code failure;
    return input != "-" && !std::filesystem::exists(std::filesystem::path(input), failure);
  });
  if (lost != flags.inputs.end() && meant.empty()) {
    return usage_error("several inputs need an output folder, and the input '" + *lost + "' does not exist",
                       "if it is the output, write -o " + *lost + "; write passes as one argument: --passes cse,dce");
  }
  return usage_error("several inputs need an output folder", meant.empty() ? folder : meant + "; else " + folder);
}

// The files that the command line reads or writes. Finds files that would be overwritten.
class Overlaps {
 public:
  explicit Overlaps(const std::vector<std::string>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] != "-") inputs_[file_identity(inputs[i])].push_back({i, inputs[i]});
    }
  }

  // Fails if the file at `path` was added before. `flag` is the option as the user wrote it. Only
  // the input with the index `own_input` may be overwritten.
  Status add(const std::string& flag, const std::string& path, std::optional<size_t> own_input = std::nullopt) {
    if (path.empty() || path == "-" || is_special_file(path)) return ok_status();
    const std::string identity = file_identity(path);
    if (const Inputs::const_iterator found = inputs_.find(identity); found != inputs_.end()) {
      for (const auto& [index, input] : found->second) {
        if (index == own_input) continue;
        return usage_error(flag + " would overwrite the input '" + input + "'", "name another file");
      }
    }
    const auto& [place, is_new] = products_.emplace(identity, flag);
    if (is_new) return ok_status();
    return usage_error(place->second + " and " + flag + " are the same file, so one would overwrite the other",
                       "name two different files");
  }

 private:
  using Inputs = std::map<std::string, std::vector<std::pair<size_t, std::string>>>;
  Inputs inputs_;
  std::map<std::string, std::string> products_;
};

// Checks before the work starts that `path` is not a folder and that its folder exists.
Status check_folder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (is_folder(path))
    return Error{ErrorCode::kFileWrite, "cannot write '" + path + "': it is a folder", "name a file in the folder", {}};
  if (path == "-" || folder.empty() || is_folder(folder)) return ok_status();
  return Error{ErrorCode::kFileWrite, "cannot write '" + path + "': there is no folder '" + folder + "'", "", {}};
}

Status check_envelope(Console& console, Overlaps& overlaps) {
  const Status json = overlaps.add("--json=" + console.json_path(), console.json_path());
  if (!json.ok()) console.withhold_envelope();  // it would overwrite another file
  return json;
}

Status check_overlaps(Console& console, const FileFlags& flags, const std::vector<Product>& products) {
  Overlaps overlaps(flags.inputs);
  for (size_t i = 0; i < products.size(); ++i) {
    if (const Status status = overlaps.add("-o " + products[i].path, products[i].path, i); !status.ok()) return status;
  }
  if (const Status report = overlaps.add("--report=" + flags.report, flags.report); !report.ok()) return report;
  return check_envelope(console, overlaps);
}

}  // namespace

std::string_view format_name(Format format) {
  for (const FormatName& row : kFormats) {
    if (row.format == format) return row.name;
  }
  return "";
}

Status check_extra_products(Console& console, const std::vector<std::string>& inputs,
                            const std::vector<ExtraProduct>& products) {
  Overlaps overlaps(inputs);
  for (const auto& [flag, path] : products) {
    if (const Status status = overlaps.add(flag + "=" + path, path); !status.ok()) return status;
    if (const Status folder = check_folder(path); !folder.ok()) return folder;
  }
  return check_envelope(console, overlaps);
}

Status check_extra_product(Console& console, const std::vector<std::string>& inputs, const std::string& flag,
                           const std::string& path) {
  return check_extra_products(console, inputs, {{flag, path}});
}

Result<std::vector<Product>> plan_products(Console& console, const FileFlags& flags) {
  const Result<std::optional<Format>> format = parse_format(flags.format);
  if (!format.ok()) return format.error();
  if (const Status inputs = check_inputs(flags.inputs); !inputs.ok()) return inputs.error();
  const Result<std::vector<std::string>> paths = product_paths(console, flags, *format);
  if (!paths.ok()) return paths.error();
  std::vector<Product> products;
  for (const std::string& path : *paths) {
    const Result<Format> form = form_of(path, *format);
    if (!form.ok()) return form.error();
    products.push_back({path, *form});
    if (path == "-" && console.json_takes_stdout()) {
      return usage_error("the graph and the JSON object cannot both go to standard output",
                         "give -o FILE, or --json=FILE");
    }
  }
  if (const Status overlaps = check_overlaps(console, flags, products); !overlaps.ok()) return overlaps.error();
  if (!flags.output.empty() && is_folder(flags.output)) {
    const Status folder = make_folder(flags.output);
    if (!folder.ok()) return folder.error();
    for (const Product& product : products) {  // a name may contain folders: "A/step.pb"
      const Status made = make_folder(std::filesystem::path(product.path).parent_path().string());
      if (!made.ok()) return made.error();
    }
  }
  return products;
}

std::vector<Product> split_product(const Product& product, const std::vector<std::string>& names) {
  std::string end = product.path.ends_with(".zst") ? ".zst" : "";
  std::string begin = product.path.substr(0, product.path.size() - end.size());
  if (format_of_path(begin).has_value()) {
    end = begin.substr(begin.rfind('.')) + end;
    begin.resize(begin.rfind('.'));
  }
  std::vector<Product> products;
  for (const std::string& name : names) products.push_back({begin + "." + name + end, product.format});
  return products;
}

bool save_product(Console& console, const Module& module, const Product& product) {
  const Stopwatch watch;
  Result<std::string> bytes = print_module(module, product.format);
  if (bytes.ok() && product.path == "-") return console.write_product(*bytes);
  if (!bytes.ok() && product.path != "-") bytes.error().where.file = product.path;
  return console.is_ok(bytes) && console.write_output(product.path, *bytes, watch);
}

}  // namespace fxopt
