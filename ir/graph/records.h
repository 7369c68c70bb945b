#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/preprocessor/seq/for_each.hpp>
#include <boost/preprocessor/stringize.hpp>
#include <boost/preprocessor/variadic/to_seq.hpp>

#include "ir/graph/arg.h"
#include "ir/graph/expr.h"
#include "ir/graph/ids.h"
#include "ir/graph/types.h"

// The parts of a module that are records, not tables. A record is a plain struct. Its visit() lists
// the fields once. The protobuf mapping, the text form (.fxg), equality and the completeness test
// against the schema all use visit(). Therefore a field that is added here and in fxgraph.proto is
// read, printed and compared everywhere. Fields have the same names as in the schema.
//
// visit() calls field(name, member) for each field. A member has one of these types:
//   - bool, int64_t, uint64_t, uint32_t, Integer or an enumeration
//   - std::string: raw bytes
//   - StringId or ExprField: an invalid id means absent
//   - a nested record
//   - std::optional or std::vector of these types
//   - ValueId: a tensor in the Pool of the Graph or Module that contains the record
//   - MetaRange: metadata entries in the Pool of the Graph or Module that contains the record
//
// The member `unknown` holds unknown fields of a newer schema as serialized bytes.

namespace fxopt {

#define FXOPT_FIELD(r, data, name) field(BOOST_PP_STRINGIZE(name), self.name);
#define FXOPT_FIELDS(...)                                                        \
  template <class Self, class Field>                                             \
  static void visit(Self& self, Field&& field) {                                 \
    BOOST_PP_SEQ_FOR_EACH(FXOPT_FIELD, _, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__)) \
  }

// An expression that is a field of a record. An invalid id means absent.
struct ExprField {
  ExprId id;
  bool operator==(const ExprField&) const = default;
};

// The schema's Int: a number, an expression, or unknown. For an unknown integer, both `value` and
// `expr` are absent.
struct Integer {
  std::optional<int64_t> value;
  ExprId expr;

  static Integer of(int64_t number) { return Integer{number, ExprId()}; }
  static Integer of(Dim dim) { return dim.is_static() ? of(dim.value) : Integer{std::nullopt, dim.expr}; }
  bool is_known() const { return value.has_value() || expr.is_valid(); }
  bool operator==(const Integer&) const = default;
};

// Metadata entries in the Pool of the Graph or Module that contains the record: key (kString),
// value, key, value, ...
struct MetaRange {
  ArgRange range;
};

// The program that produced the module.
struct Producer {
  static constexpr const char* kMessage = "Producer";
  StringId tool;
  StringId version;
  StringId framework;
  StringId framework_version;
  StringId recipe;
  std::string unknown;
  FXOPT_FIELDS(tool, version, framework, framework_version, recipe)
};

// A symbolic scalar and the place of its definition.
struct Symbol {
  static constexpr const char* kMessage = "Symbol";
  StringId name;
  SymbolKind kind = SymbolKind{};
  SymbolType type = SymbolType{};
  std::optional<int64_t> min;
  std::optional<int64_t> max;
  std::optional<int64_t> hint;
  StringId graph;
  StringId node;
  std::vector<StringId> key_path;
  StringId source;
  std::string unknown;
  FXOPT_FIELDS(name, kind, type, min, max, hint, graph, node, key_path, source)
};

// A condition that the tracer assumed to be true.
struct Assertion {
  static constexpr const char* kMessage = "Assertion";
  ExprField condition;
  StringId message;
  StringId source;
  std::string unknown;
  FXOPT_FIELDS(condition, message, source)
};

// The memory of one or more tensors, as recorded in the file.
struct StorageRecord {
  static constexpr const char* kMessage = "Storage";
  uint64_t id = 0;
  Integer bytes;
  StringId device;
  bool pinned = false;
  std::string unknown;
  FXOPT_FIELDS(id, bytes, device, pinned)
};

// A process group. Two process groups may have the same ranks.
struct ProcessGroup {
  static constexpr const char* kMessage = "ProcessGroup";
  StringId uid;
  std::vector<int64_t> ranks;
  StringId description;
  StringId backend;
  StringId mesh;
  std::vector<StringId> mesh_dims;
  bool made_by_pass = false;
  StringId made_by;
  std::string unknown;
  FXOPT_FIELDS(uid, ranks, description, backend, mesh, mesh_dims, made_by_pass, made_by)
};

// A mesh of ranks. `ranks` is in row-major order over `shape`.
struct DeviceMesh {
  static constexpr const char* kMessage = "DeviceMesh";
  StringId name;
  StringId device_type;
  std::vector<int64_t> shape;
  std::vector<StringId> dim_names;
  std::vector<int64_t> ranks;
  std::vector<int64_t> coordinate;
  std::vector<StringId> groups;
  std::string unknown;
  FXOPT_FIELDS(name, device_type, shape, dim_names, ranks, coordinate, groups)
};

// An operator's schema as the framework registered it.
struct OpSchemaRecord {
  static constexpr const char* kMessage = "OpSchema";
  StringId target;
  StringId schema;
  std::vector<StringId> tags;
  std::optional<bool> is_mutable;
  std::optional<bool> effectful;
  std::optional<bool> pure;
  std::string unknown;
  FXOPT_FIELDS(target, schema, tags, is_mutable, effectful, pure)
};

// A constant tensor that a get_attr reads. Data of up to 1 KiB is inline. Larger data is in a
// .safetensors file.
struct Constant {
  static constexpr const char* kMessage = "Constant";
  StringId name;
  ValueId tensor;
  std::optional<std::string> inline_data;
  StringId path;
  StringId key;
  std::optional<uint64_t> xxh64;
  std::string unknown;
  FXOPT_FIELDS(name, tensor, inline_data, path, key, xxh64)
};

// A random generator.
struct RngSlot {
  static constexpr const char* kMessage = "RngSlot";
  StringId name;
  StringId generator;
  StringId device;
  RngState state = RngState{};
  std::string unknown;
  FXOPT_FIELDS(name, generator, device, state)
};

// A device stream.
struct Stream {
  static constexpr const char* kMessage = "Stream";
  StringId name;
  StringId device;
  std::optional<int64_t> priority;
  std::string unknown;
  FXOPT_FIELDS(name, device, priority)
};

// The rank that was traced.
struct RankContext {
  static constexpr const char* kMessage = "RankContext";
  std::optional<int64_t> rank;
  std::optional<int64_t> world_size;
  std::string unknown;
  FXOPT_FIELDS(rank, world_size)
};

// Whether the passes followed a node's Tag, with the rule and the pass that decided this.
struct TagVerdict {
  static constexpr const char* kMessage = "TagVerdict";
  Verdict verdict = Verdict{};
  TagRule rule = TagRule{};
  StringId pass;
  std::string unknown;
  FXOPT_FIELDS(verdict, rule, pass)
};

// The origin of a node's Tag, if an fxopt pass wrote or copied the tag.
struct TagSource {
  static constexpr const char* kMessage = "TagSource";
  // The pass whose policy chose the tag. Invalid if the tag is a copy of a tag that the graph's
  // producer wrote.
  StringId pass;
  // The tag was copied from a node that this node replaces, or was written over an earlier tag of
  // this node. Module::erased has the tag of the replaced node, or the earlier tag.
  bool is_copied = false;
  std::string unknown;
  bool operator==(const TagSource&) const = default;
  FXOPT_FIELDS(pass, is_copied)
};

// One pass of a pipeline, and whether fxopt proved that the pass preserves the module's results.
// `laws` are the rewrite rules that the proof used.
struct ProvedStep {
  static constexpr const char* kMessage = "ProvedStep";
  StringId pass;
  StringId version;
  ProofVerdict verdict = ProofVerdict{};
  std::vector<StringId> laws;
  StringId why;
  std::string unknown;
  FXOPT_FIELDS(pass, version, verdict, laws, why)
};

// The passes that changed the module since it was read (`steps`), and whether each pass was proved
// to preserve the module's results. `computes` is a hash of the computation in the module after the
// last of these passes. If this hash of the current module differs from `computes`, the module has
// changed since, and the proofs are not valid.
struct Certificate {
  static constexpr const char* kMessage = "Certificate";
  StringId computes;
  std::vector<ProvedStep> steps;
  std::vector<StringId> allowed;
  uint64_t recorded_views = 0;
  uint64_t storage_id_views = 0;
  StringId calls;
  std::string unknown;
  FXOPT_FIELDS(computes, steps, allowed, recorded_views, storage_id_views, calls)
};

// An activation-checkpoint region.
struct Region {
  static constexpr const char* kMessage = "Region";
  std::optional<int64_t> id;
  bool id_is_none = false;
  StringId name;
  bool has_backward_hook = false;
  std::string unknown;
  bool operator==(const Region&) const = default;
  FXOPT_FIELDS(id, id_is_none, name, has_backward_hook)
};

// A node from which this node was made.
struct Origin {
  static constexpr const char* kMessage = "Origin";
  StringId graph;
  uint64_t uid = 0;
  OriginKind kind = OriginKind{};
  StringId pass;
  std::string unknown;
  FXOPT_FIELDS(graph, uid, kind, pass)
};

// A source location.
struct Source {
  static constexpr const char* kMessage = "Source";
  StringId file;
  uint32_t line = 0;
  StringId function;
  StringId code;
  std::string unknown;
  bool operator==(const Source&) const = default;
  FXOPT_FIELDS(file, line, function, code)
};

// The place of a collective in a bucketing plan.
struct Bucket {
  static constexpr const char* kMessage = "Bucket";
  StringId id;
  std::vector<StringId> plan_fqns;
  StringId direction;
  std::optional<int64_t> position;
  std::string unknown;
  FXOPT_FIELDS(id, plan_fqns, direction, position)
};

// The reason why a pass left a node unchanged.
struct Remark {
  static constexpr const char* kMessage = "Remark";
  StringId pass;
  StringId code;
  StringId text;
  std::string unknown;
  FXOPT_FIELDS(pass, code, text)
};

// The random numbers that a random node draws from a generator (RngSlot).
struct RngUse {
  static constexpr const char* kMessage = "RngUse";
  StringId slot;
  Integer seed;
  Integer offset;
  Integer increment;
  std::vector<int64_t> grid;
  std::vector<int64_t> block;
  std::optional<uint64_t> order;
  std::string unknown;
  FXOPT_FIELDS(slot, seed, offset, increment, grid, block, order)
};

// The record of a node that a pass erased. It keeps either the node's recompute tag (`tag`) or the
// fact that the node had the save mark `ap_must_save` (ir/step/marks.h). If the node had both, two
// records exist.
struct ErasedNode {
  static constexpr const char* kMessage = "ErasedNode";
  StringId graph;
  uint64_t uid = 0;
  StringId name;
  StringId target;
  Tag tag = Tag{};
  std::optional<TagVerdict> verdict;
  StringId pass;
  std::vector<Origin> origins;
  bool is_mark = false;  // true if the record is for the mark `ap_must_save`; `tag` is then kNone
  std::optional<TagSource> tag_source;
  std::string unknown;
  FXOPT_FIELDS(graph, uid, name, target, tag, verdict, pass, origins, is_mark, tag_source)
};

// The role of a placeholder.
struct InputSpec {
  static constexpr const char* kMessage = "InputSpec";
  InputRole role = InputRole{};
  StringId fqn;
  bool guessed = false;
  bool persistent = false;
  bool donated = false;
  bool static_address = false;
  bool mutated = false;
  std::optional<int64_t> alias_of_input;
  std::vector<StringId> subclass_path;
  std::optional<int64_t> user_index;
  StringId optimizer_key;
  std::optional<int64_t> saved_from_output;
  StringId desc;
  std::string unknown;
  FXOPT_FIELDS(role, fqn, guessed, persistent, donated, static_address, mutated, alias_of_input, subclass_path,
               user_index, optimizer_key, saved_from_output, desc)
};

// The role of one output of a graph. Each leaf of the output node's nested argument is one output.
struct OutputSpec {
  static constexpr const char* kMessage = "OutputSpec";
  OutputRole role = OutputRole{};
  StringId of;
  StringId fqn;
  bool guessed = false;
  std::optional<int64_t> alias_of_input;
  std::optional<int64_t> alias_of_output;
  std::vector<StringId> subclass_path;
  StringId desc;
  bool no_version_check = false;
  std::string unknown;
  FXOPT_FIELDS(role, of, fqn, guessed, alias_of_input, alias_of_output, subclass_path, desc, no_version_check)
};

// A tensor subclass, and the positions of its inner tensors among the flattened inputs or outputs.
struct SubclassLayout {
  static constexpr const char* kMessage = "SubclassLayout";
  StringId type;
  StringId side;
  int64_t first = 0;
  int64_t count = 0;
  std::vector<StringId> attributes;
  MetaRange meta;
  std::string unknown;
  FXOPT_FIELDS(type, side, first, count, attributes, meta)
};

// An object that fxopt stores but does not interpret.
struct OpaqueRecord {
  static constexpr const char* kMessage = "Opaque";
  StringId type;
  StringId text;
  std::string payload;
  std::string unknown;
  FXOPT_FIELDS(type, text, payload)
};

// The object that a get_attr target names.
struct Attribute {
  static constexpr const char* kMessage = "Attribute";
  StringId path;
  StringId constant;
  StringId graph;
  std::optional<OpaqueRecord> opaque;
  std::string unknown;
  FXOPT_FIELDS(path, constant, graph, opaque)
};

// The source of one input of an Invocation.
struct Binding {
  static constexpr const char* kMessage = "Binding";
  uint32_t input = 0;
  std::optional<uint32_t> invocation;
  uint32_t output = 0;
  std::string unknown;
  FXOPT_FIELDS(input, invocation, output)
};

// One execution of a graph in a training step.
struct Invocation {
  static constexpr const char* kMessage = "Invocation";
  StringId graph;
  Integer stage;
  Integer microbatch;
  Integer peer;
  std::vector<Binding> bindings;
  StringId label;
  std::string unknown;
  FXOPT_FIELDS(graph, stage, microbatch, peer, bindings, label)
};

#undef FXOPT_FIELDS
#undef FXOPT_FIELD

}  // namespace fxopt
