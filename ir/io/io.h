#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "ir/graph/module.h"

namespace fxopt {

// The file formats of a module. All hold the same content; each converts to the others without
// loss.
enum class Format : uint8_t {
  kPb,    // binary protobuf: schemas/fxgraph.proto, message File
  kText,  // .fxg: ir/io/README.md
  kJson,  // the protobuf JSON mapping, with strings instead of indices: ir/io/json.h
};

// Returns the format by the name's extension: .pb, .fxg, .json, each also with .zst. Returns
// nothing for any other name.
std::optional<Format> format_of_path(std::string_view path);

// Returns the format by the first bytes. '{' or '[' means JSON, bytes without control characters
// mean text, anything else means binary.
Format format_of_bytes(std::string_view bytes);

// Limits of every reader, so that hostile input cannot exhaust memory or stack. Error: kLimit.
struct ReadLimits {
  uint32_t max_depth = 64;                 // nesting of arguments, values, expressions
  uint64_t max_nodes = uint64_t{1} << 27;  // all graphs together
  uint64_t max_string_bytes = uint64_t{1} << 26;
};

// Reads a module from bytes of one format. `file` names the input in errors. Structural faults that
// make the content unusable are errors: bad syntax, references to nothing, duplicate names.
// Everything else loads unchanged, and the verifier reports it: uses before definitions, unknown
// groups, values that do not fit. Errors: the 3xx family.
Result<std::unique_ptr<Module>> parse_pb(std::string_view bytes, const std::string& file,
                                         const ReadLimits& limits = {});
// Reads into an existing module. The new graphs follow its graphs, and the new uids and storage ids
// count from its counters. Names of the new graphs must not occur in it yet. After an error the
// module must not be used. See merge_module().
Status parse_pb_into(Module& module, std::string_view bytes, const std::string& file, const ReadLimits& limits = {});
Result<std::unique_ptr<Module>> parse_text(std::string_view bytes, const std::string& file,
                                           const ReadLimits& limits = {});
Result<std::unique_ptr<Module>> parse_json(std::string_view bytes, const std::string& file,
                                           const ReadLimits& limits = {});
Result<std::unique_ptr<Module>> parse_module(std::string_view bytes, Format format, const std::string& file,
                                             const ReadLimits& limits = {});

// Writes a module: the same module gives the same bytes. Error: kFileTooLarge if the binary form
// would reach 2 GiB.
Result<std::string> print_pb(const Module& module);
struct TextOptions {
  bool uids = true;      // print a node's uid unless it is the previous node's plus one
  bool version = true;   // the first line, "fxg 0"
  bool storages = true;  // `storage` lines
};
std::string print_text(const Module& module, const TextOptions& options = {});
// Only that graph.
std::string print_text(const Graph& graph, const TextOptions& options = {});
// One line, without the newline.
std::string print_node(const Graph& graph, NodeId node);
// Only target and arguments: "aten.mm.default(%x, %w)", "return (%c,)".
std::string print_call(const Graph& graph, NodeId node);
// The records of a module that graphs refer to by name: symbols, process groups, device meshes,
// streams, rank and invocations.
std::string print_records_text(const Module& module);
Result<std::string> print_json(const Module& module);
Result<std::string> print_module(const Module& module, Format format);

// Reads a file or "-", compressed or not. The content decides the format. Errors: those of
// read_file and of the readers.
Result<std::unique_ptr<Module>> load_module(const std::string& path, const ReadLimits& limits = {});
// Writes a file. The path's extension decides the format unless `format` is given; "-" without a
// format is text. Atomic, see write_file.
Status save_module(const Module& module, const std::string& path, std::optional<Format> format = std::nullopt);

}  // namespace fxopt
