#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "ir/graph/module.h"

namespace fxopt {

// The file formats of a module. All formats store the same content, so a file converts to any other
// format without loss.
enum class Format : uint8_t {
  kPb,    // binary protobuf: schemas/fxgraph.proto, message File
  kText,  // .fxg: ir/io/README.md
  kJson,  // the protobuf JSON mapping, with strings instead of indices: ir/io/json.h
};

// Returns the format that the path's extension names: .pb, .fxg or .json. Each extension may be
// followed by .zst. Returns nullopt for any other path.
std::optional<Format> format_of_path(std::string_view path);

// Returns the format that the first bytes indicate. '{' or '[' means JSON. Bytes without control
// characters mean text. Anything else means binary.
Format format_of_bytes(std::string_view bytes);

// Limits of every reader. The limits keep hostile input from exhausting memory or stack. A reader
// fails with kLimit if the input exceeds a limit.
struct ReadLimits {
  uint32_t max_depth = 64;                 // nesting of arguments, values and expressions
  uint64_t max_nodes = uint64_t{1} << 27;  // total over every graph
  uint64_t max_string_bytes = uint64_t{1} << 26;
};

// Reads a module from bytes of one format. `file` names the input in errors. Faults that make the
// content unusable are errors. Examples are bad syntax, references to undefined names, and
// duplicate names. Content with other faults is loaded unchanged, and the verifier reports the
// faults. Examples are uses before definitions, and unknown process groups. Errors: codes 3xx in
// core/errors.md.
Result<std::unique_ptr<Module>> parse_pb(std::string_view bytes, const std::string& file,
                                         const ReadLimits& limits = {});
// Reads into an existing module. The new graphs follow the existing graphs. The new uids and
// storage ids continue from the module's counters. The names of the new graphs must not exist in
// the module yet. After an error, the module must not be used. See also merge_module().
Status parse_pb_into(Module& module, std::string_view bytes, const std::string& file, const ReadLimits& limits = {});
Result<std::unique_ptr<Module>> parse_text(std::string_view bytes, const std::string& file,
                                           const ReadLimits& limits = {});
Result<std::unique_ptr<Module>> parse_json(std::string_view bytes, const std::string& file,
                                           const ReadLimits& limits = {});
Result<std::unique_ptr<Module>> parse_module(std::string_view bytes, Format format, const std::string& file,
                                             const ReadLimits& limits = {});

// Writes a module. The same module gives the same bytes. Fails with kFileTooLarge if the binary
// form would reach 2 GiB.
Result<std::string> print_pb(const Module& module);
struct TextOptions {
  bool uids = true;      // print a uid if it is not the previous node's uid plus one
  bool version = true;   // print the first line, "fxg 0"
  bool storages = true;  // print the `storage` lines
};
std::string print_text(const Module& module, const TextOptions& options = {});
// Prints only `graph`.
std::string print_text(const Graph& graph, const TextOptions& options = {});
// Prints one node as one line, without the newline.
std::string print_node(const Graph& graph, NodeId node);
// Prints only the target and arguments of a node, such as "aten.mm.default(%x, %w)" or "return
// (%c,)".
std::string print_call(const Graph& graph, NodeId node);
// Prints the module's symbols, process groups, device meshes, streams, rank and invocations,
// without the graphs.
std::string print_records_text(const Module& module);
Result<std::string> print_json(const Module& module);
Result<std::string> print_module(const Module& module, Format format);

// Reads the file `path`, or standard input if `path` is "-". The file may be compressed. The
// content decides the format. Errors: those of read_file() and of the readers.
Result<std::unique_ptr<Module>> load_module(const std::string& path, const ReadLimits& limits = {});
// Writes a file in `format`. If `format` is missing, the path's extension decides, and the path "-"
// gets text. The file is written atomically, see write_file().
Status save_module(const Module& module, const std::string& path, std::optional<Format> format = std::nullopt);

}  // namespace fxopt
