#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "ir/graph/module.h"

namespace fxopt {

// The forms a module is written in. All hold the same content; each converts to the others without loss.
enum class Format : uint8_t {
  kPb,    // binary protobuf: schemas/fxgraph.proto, message File
  kText,  // .fxg: ir/io/README.md
  kJson,  // the protobuf JSON mapping with strings in place of indices: ir/io/json.h
};

// By the name's extension (.pb, .fxg, .json, each also with .zst); nothing when there is none of these.
std::optional<Format> format_of_path(std::string_view path);

// By the first bytes: '{' or '[' is JSON, what holds no control characters is text, anything else is taken for binary.
Format format_of_bytes(std::string_view bytes);

// What every reader refuses to exceed, so that hostile input cannot exhaust memory or stack. Error: kLimit.
struct ReadLimits {
  uint32_t max_depth = 64;                 // nesting of arguments, values, expressions
  uint64_t max_nodes = uint64_t{1} << 27;  // of all graphs together
  uint64_t max_string_bytes = uint64_t{1} << 26;
};

// Reads a module from bytes of one form. `file` names the input in errors. Structural faults that make the content
// unusable (bad syntax, references to nothing, duplicate names) are errors; everything else (uses before definitions,
// unknown groups, values that do not fit) loads as it is, for the verifier to report. Errors: the 3xx family.
Result<std::unique_ptr<Module>> parse_pb(std::string_view bytes, const std::string& file,
                                         const ReadLimits& limits = {});
// The same into a module, beside what is there: graphs come after its own, uids and storage ids count from its
// counters. The names of the graphs must be new. After an error the module is of no use. See merge_module().
Status parse_pb_into(Module& module, std::string_view bytes, const std::string& file, const ReadLimits& limits = {});
Result<std::unique_ptr<Module>> parse_text(std::string_view bytes, const std::string& file,
                                           const ReadLimits& limits = {});
Result<std::unique_ptr<Module>> parse_json(std::string_view bytes, const std::string& file,
                                           const ReadLimits& limits = {});
Result<std::unique_ptr<Module>> parse_module(std::string_view bytes, Format format, const std::string& file,
                                             const ReadLimits& limits = {});

// Writes a module: the same module gives the same bytes. Error: kFileTooLarge when the binary form would reach 2 GiB.
Result<std::string> print_pb(const Module& module);
struct TextOptions {
  bool uids = true;      // print the uid of nodes where it is not the previous node's plus one
  bool version = true;   // the first line, "fxg 0"
  bool storages = true;  // `storage` lines
};
std::string print_text(const Module& module, const TextOptions& options = {});
std::string print_text(const Graph& graph, const TextOptions& options = {});  // that graph alone
std::string print_node(const Graph& graph, NodeId node);                      // one line, without the newline
Result<std::string> print_json(const Module& module);
Result<std::string> print_module(const Module& module, Format format);

// A file or "-", compressed or not; the form by the content. Errors: those of read_file and of the readers.
Result<std::unique_ptr<Module>> load_module(const std::string& path, const ReadLimits& limits = {});
// The form by the path's extension unless given; "-" without a form is text. Atomic, see write_file.
Status save_module(const Module& module, const std::string& path, std::optional<Format> format = std::nullopt);

}  // namespace fxopt
