// Reads the binary form. The bytes of the module are hashed before they are parsed. Module and
// graphs are read field by field, so only one node at a time is a protobuf object. The string table
// may be anywhere in the module. Therefore a first walk collects the strings, and the extents of
// all other fields.
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "fxgraph.pb.h"

#include "core/bytes.h"
#include "core/hash.h"
#include "ir/io/io.h"
#include "ir/io/pb_decode.h"
#include "ir/io/pb_envelope.h"
#include "ir/io/pb_ids.h"
#include "ir/io/pb_node.h"
#include "ir/io/pb_unknown.h"
#include "ir/io/pb_wire.h"

namespace fxopt {
namespace {

using M = schema::Module;
using G = schema::Graph;

// Each level of an argument takes up to three nested messages: Arg, ArgDict and ArgItem. The
// arguments are a few messages below the module.
int message_depth(const ReadLimits& limits) { return static_cast<int>(limits.max_depth) * 3 + 16; }

// One field of the module, not yet parsed.
struct Extent {
  uint32_t number = 0;
  uint64_t value = 0;
  std::string_view bytes;
};

class PbReader {
 public:
  // Reads into `module`, which may already have content.
  PbReader(const PbEnvelope& envelope, const ReadLimits& limits, Module& module)
      : envelope_(envelope),
        limits_(limits),
        module_(&module),
        first_graph_(module.num_graphs()),
        first_storage_(module.num_storages()),
        uid_base_(module.next_uid),
        storage_base_(module.next_storage),
        decoder_(module, limits),
        arena_(block_.data(), block_.size()) {
    decoder_.set_bases(uid_base_, storage_base_);
  }

  Status read();

 private:
  bool index_module();
  bool is_known(const WireField& field) const;
  bool read_module();
  bool read_first(const Extent& extent);
  bool read_field(const Extent& extent);
  bool read_singular(uint32_t number, std::string_view bytes);
  bool read_counters();
  bool read_name_counters(const schema::Counters& counters);
  bool read_storage(const Extent& extent);
  bool check_counts();

  template <class Message, class Record>
  bool append(const Extent& extent, const char* name, std::vector<Record>& to);
  template <class Message, class Record>
  bool assign(std::string_view bytes, const char* name, std::optional<Record>& to);
  template <class Message>
  bool carry(std::string_view bytes, const char* name, std::optional<std::string>& to);

  bool read_graph(std::string_view bytes);
  bool survey_graph(std::string_view bytes);
  bool read_graph_field(Graph& graph, const WireField& field);
  bool read_graph_name(Graph& graph, const WireField& field);
  bool read_node(Graph& graph, std::string_view bytes);
  // Returns an empty message, which replaces the previous one.
  template <class Message>
  Message& fresh() {
    arena_.Reset();
    return *google::protobuf::Arena::CreateMessage<Message>(&arena_);
  }
  bool parse(google::protobuf::Message& message, std::string_view bytes);
  bool fail_at(const WireReader& reader, std::string_view bytes);
  uint64_t offset_of(std::string_view bytes) const;
  bool place(std::string_view bytes);

  PbEnvelope envelope_;
  ReadLimits limits_;
  Module* module_;
  size_t first_graph_, first_storage_;  // indices of the first graph and storage to be read
  uint64_t uid_base_, storage_base_;    // added to every id in the file
  PbDecoder decoder_;
  std::vector<Extent> extents_;
  std::map<uint32_t, std::string_view> singular_;  // singular fields of the module, by field number
  uint64_t num_nodes_ = 0;                         // total over all graphs
  CountedIds uids_, storage_ids_;

  // State of the current graph.
  std::array<char, 64 * 1024> block_;
  google::protobuf::Arena arena_;  // holds one protobuf object at a time, first in block_
  google::protobuf::RepeatedPtrField<schema::MetaEntry> graph_meta_;
  std::vector<PbNodeArgs> node_args_;
  uint32_t graph_name_ = 0;
  size_t graph_nodes_ = 0;
};

Status PbReader::read() {
  if (index_module() && read_module() && check_counts()) return ok_status();
  return std::move(decoder_.error());
}

// ---- places of errors

// Returns the offset of `bytes` in the file. If `bytes` were assembled from several places, returns
// the offset of the module.
uint64_t PbReader::offset_of(std::string_view bytes) const {
  const std::less<const char*> before;
  const char* first = envelope_.module.data();
  const bool inside = !before(bytes.data(), first) && !before(first + envelope_.module.size(), bytes.data());
  return envelope_.module_offset + (inside ? static_cast<uint64_t>(bytes.data() - first) : 0);
}

bool PbReader::place(std::string_view bytes) {
  Where& where = decoder_.error().where;
  if (!where.has_byte) where.byte = offset_of(bytes);
  where.has_byte = true;
  return false;
}

bool PbReader::fail_at(const WireReader& reader, std::string_view bytes) {
  decoder_.fail(ErrorCode::kMalformed, std::string(reader.fault()));
  return place(bytes.substr(reader.offset()));
}

bool PbReader::parse(google::protobuf::Message& message, std::string_view bytes) {
  const int depth = message_depth(limits_);
  if (parse_message(message, bytes, depth)) return true;
  decoder_.error() = explain_parse_failure(bytes, *message.GetDescriptor(), offset_of(bytes), depth);
  return false;
}

// ---- the module

// Whether the schema has the field with this wire type.
bool PbReader::is_known(const WireField& field) const {
  const google::protobuf::FieldDescriptor* known = M::descriptor()->FindFieldByNumber(static_cast<int>(field.number));
  if (known == nullptr) return false;
  return field.type == (field.number == M::kNameFieldNumber ? WireType::kVarint : WireType::kBytes);
}

bool PbReader::index_module() {
  WireReader reader(envelope_.module);
  while (const WireField* field = reader.next()) {
    if (!is_known(*field)) {
      module_->unknown.append(field->raw);
      continue;
    }
    switch (field->number) {
      case M::kStringsFieldNumber:
        if (!decoder_.add_string(field->payload)) return place(field->raw);
        break;
      case M::kProducerFieldNumber:
      case M::kRankFieldNumber:
      case M::kCountersFieldNumber:
      case M::kProfileFieldNumber:
      case M::kMemoryPlanFieldNumber:
      case M::kCertificateFieldNumber:
        // Protobuf would merge two occurrences of such a field. fxopt never writes two occurrences,
        // and each may be incomplete, so this is an error.
        if (!singular_.try_emplace(field->number, field->payload).second) {
          decoder_.fail(ErrorCode::kMalformed,
                        "field " + std::to_string(field->number) + " of the module is given twice");
          return place(field->raw);
        }
        break;
      default:
        extents_.push_back(Extent{field->number, field->value, field->payload});
    }
  }
  return reader.fault().empty() || fail_at(reader, envelope_.module);
}

bool PbReader::read_module() {
  // Storages and operator schemas are read first, because tensors refer to storages, and operator
  // schemas describe targets.
  for (const Extent& extent : extents_) {
    if (!read_first(extent)) return place(extent.bytes);
  }
  module_->resolve_targets();
  for (const auto& [number, bytes] : singular_) {
    if (!read_singular(number, bytes)) return place(envelope_.module);
  }
  google::protobuf::RepeatedPtrField<schema::MetaEntry> meta;
  for (const Extent& extent : extents_) {
    const bool is_meta = extent.number == M::kMetaFieldNumber;
    if (!(is_meta ? parse(*meta.Add(), extent.bytes) : read_field(extent))) return place(extent.bytes);
  }
  const std::optional<ArgRange> range = decoder_.meta(meta);
  if (!range.has_value()) return place(envelope_.module);
  module_->meta = *range;
  for (const Extent& extent : extents_) {
    if (extent.number == M::kGraphsFieldNumber && !read_graph(extent.bytes)) return place(extent.bytes);
  }
  return read_counters() || place(envelope_.module);
}

template <class Message, class Record>
bool PbReader::append(const Extent& extent, const char* name, std::vector<Record>& to) {
  Message& message = fresh<Message>();
  Record& record = to.emplace_back();
  const bool ok = parse(message, extent.bytes) && decoder_.set(decoder_.record<Record>(message), record);
  return ok || decoder_.in(name, to.size() - 1);
}

template <class Message, class Record>
bool PbReader::assign(std::string_view bytes, const char* name, std::optional<Record>& to) {
  Message message;
  const bool ok = parse(message, bytes) && decoder_.set(decoder_.record<Record>(message), to);
  return ok || decoder_.in(name);
}

template <class Message>
bool PbReader::carry(std::string_view bytes, const char* name, std::optional<std::string>& to) {
  Message message;
  if (!parse(message, bytes)) return decoder_.in(name);
  to = std::string(bytes);
  return true;
}

bool PbReader::read_storage(const Extent& extent) {
  schema::Storage& message = fresh<schema::Storage>();
  if (!parse(message, extent.bytes)) return decoder_.in("storages", module_->num_storages());
  message.set_id(storage_base_ + storage_ids_.read(message.has_id(), message.id()));
  std::optional<StorageRecord> storage = decoder_.record<StorageRecord>(message);
  if (!storage.has_value()) return decoder_.in("storages", module_->num_storages());
  const uint64_t id = storage->id;
  if (id == UINT64_MAX) return decoder_.fail(ErrorCode::kLimit, "storage id " + std::to_string(id) + " is too large");
  if (module_->find_storage(id).is_valid()) {
    return decoder_.fail(ErrorCode::kDuplicateName, "two storages have the id " + std::to_string(id));
  }
  module_->add_storage(*std::move(storage));
  return true;
}

bool PbReader::read_first(const Extent& extent) {
  switch (extent.number) {
    case M::kNameFieldNumber:
      return decoder_.text(static_cast<uint32_t>(extent.value), module_->name, "name");
    case M::kStoragesFieldNumber:
      return read_storage(extent);
    case M::kOpSchemasFieldNumber:
      return append<schema::OpSchema>(extent, "op_schemas", module_->op_schemas);
    default:
      return true;
  }
}

bool PbReader::read_field(const Extent& extent) {
  switch (extent.number) {
    case M::kInvocationsFieldNumber:
      return append<schema::Invocation>(extent, "invocations", module_->invocations);
    case M::kSymbolsFieldNumber:
      return append<schema::Symbol>(extent, "symbols", module_->symbols);
    case M::kAssertionsFieldNumber:
      return append<schema::Assertion>(extent, "assertions", module_->assertions);
    case M::kGroupsFieldNumber:
      return append<schema::ProcessGroup>(extent, "groups", module_->groups);
    case M::kMeshesFieldNumber:
      return append<schema::DeviceMesh>(extent, "meshes", module_->meshes);
    case M::kConstantsFieldNumber:
      return append<schema::Constant>(extent, "constants", module_->constants);
    case M::kRngSlotsFieldNumber:
      return append<schema::RngSlot>(extent, "rng_slots", module_->rng_slots);
    case M::kStreamsFieldNumber:
      return append<schema::Stream>(extent, "streams", module_->streams);
    case M::kErasedFieldNumber:
      return append<schema::ErasedNode>(extent, "erased", module_->erased);
    default:
      return true;
  }
}

bool PbReader::read_singular(uint32_t number, std::string_view bytes) {
  switch (number) {
    case M::kProducerFieldNumber:
      return assign<schema::Producer>(bytes, "producer", module_->producer);
    case M::kRankFieldNumber:
      return assign<schema::RankContext>(bytes, "rank", module_->rank);
    case M::kProfileFieldNumber:
      return carry<schema::Profile>(bytes, "profile", module_->profile);
    case M::kMemoryPlanFieldNumber:
      return carry<schema::MemoryPlan>(bytes, "memory_plan", module_->memory_plan);
    case M::kCertificateFieldNumber:
      return assign<schema::Certificate>(bytes, "certificate", module_->certificate);
    default:
      return true;
  }
}

bool PbReader::read_counters() {
  const auto found = singular_.find(M::kCountersFieldNumber);
  if (found == singular_.end()) return true;
  schema::Module holder;
  schema::Counters& counters = *holder.mutable_counters();
  if (!parse(counters, found->second)) return decoder_.in("counters");
  const uint64_t next_uid = uid_base_ + counters.next_uid(), next_storage = storage_base_ + counters.next_storage();
  if (next_uid < module_->next_uid || next_storage < module_->next_storage) {
    decoder_.fail(ErrorCode::kBadValue, "a counter must be above all numbers in use",
                  "leave `counters` out: fxopt derives them");
    return decoder_.in("counters");
  }
  module_->next_uid = next_uid;
  module_->next_storage = next_storage;
  module_->unknown.append(unknown_fragment(holder));
  return read_name_counters(counters);
}

bool PbReader::read_name_counters(const schema::Counters& counters) {
  for (int i = 0; i < counters.names_size(); ++i) {
    const schema::NameCounter& entry = counters.names(i);
    const std::optional<StringId> base = decoder_.string(entry.base());
    if (!base.has_value()) return decoder_.in("counters.names", static_cast<size_t>(i));
    const size_t num_graphs = module_->num_graphs() - first_graph_;
    if (entry.graph() >= num_graphs) {
      decoder_.fail(ErrorCode::kBadReference, "graph index " + std::to_string(entry.graph()) +
                                                  ", but the number of graphs is " + std::to_string(num_graphs));
      return decoder_.in("counters.names", static_cast<size_t>(i));
    }
    const std::string text(module_->text(*base));
    const std::pair<GraphId, std::string> key(module_->graphs()[first_graph_ + entry.graph()], text);
    const bool taken = module_->name_counters.contains(key);
    if (taken || (!module_->name_counters.empty() && key < module_->name_counters.rbegin()->first)) {
      decoder_.fail(taken ? ErrorCode::kDuplicateName : ErrorCode::kBadValue,
                    (taken ? "two counters for the base " : "counters out of order at the base ") + quote(text),
                    "sort them by graph, then base");
      return decoder_.in("counters.names", static_cast<size_t>(i));
    }
    module_->name_counters.emplace(key, entry.next());
  }
  return true;
}

bool PbReader::check_counts() {
  const PbCounts found{module_->num_graphs() - first_graph_, num_nodes_, decoder_.num_strings(),
                       module_->num_storages() - first_storage_};
  const std::array<std::tuple<const char*, uint64_t, uint64_t>, 4> pairs = {{
      {"graphs", envelope_.counts.graphs, found.graphs},
      {"nodes", envelope_.counts.nodes, found.nodes},
      {"strings", envelope_.counts.strings, found.strings},
      {"storages", envelope_.counts.storages, found.storages},
  }};
  for (const auto& [what, stated, counted] : pairs) {
    if (stated == counted) continue;
    return decoder_.fail(ErrorCode::kCountMismatch, "the file states " + std::to_string(stated) + " " + what +
                                                        " but has " + std::to_string(counted));
  }
  return true;
}

// ---- graphs

// Reads the name and the number of nodes of a graph. The number is needed to check references to
// nodes.
bool PbReader::survey_graph(std::string_view bytes) {
  graph_name_ = 0;
  graph_nodes_ = 0;
  WireReader reader(bytes);
  while (const WireField* field = reader.next()) {
    if (field->number == G::kNodesFieldNumber && field->type == WireType::kBytes) ++graph_nodes_;
    if (field->number == G::kNameFieldNumber && field->type == WireType::kVarint) {
      graph_name_ = static_cast<uint32_t>(field->value);
    }
  }
  if (!reader.fault().empty()) return fail_at(reader, bytes);
  num_nodes_ += graph_nodes_;
  if (num_nodes_ <= limits_.max_nodes) return true;
  return decoder_.fail(ErrorCode::kLimit, "more than " + std::to_string(limits_.max_nodes) + " nodes");
}

bool PbReader::read_graph(std::string_view bytes) {
  if (!survey_graph(bytes)) return false;
  const std::optional<StringId> name = decoder_.string(graph_name_);
  if (!name.has_value()) return decoder_.in("name");
  if (module_->find_graph(*name).is_valid()) {
    return decoder_.fail(ErrorCode::kDuplicateName, "two graphs are named " + quote(module_->text(*name)));
  }
  Graph& graph = module_->add_graph(*name);
  decoder_.enter(graph.pool(), graph_nodes_);
  node_args_.clear();
  node_args_.reserve(graph_nodes_);
  graph_meta_.Clear();
  WireReader reader(bytes);
  bool ok = true;
  while (const WireField* field = ok ? reader.next() : nullptr) {
    const bool is_node = field->number == G::kNodesFieldNumber && field->type == WireType::kBytes;
    ok = is_node ? read_node(graph, field->payload) : read_graph_field(graph, *field);
    if (!ok) place(field->raw);
  }
  const std::optional<ArgRange> meta = ok ? decoder_.meta(graph_meta_) : std::nullopt;
  if (!meta.has_value()) {
    decoder_.error().where.graph = module_->text(*name);
    return false;
  }
  graph.meta = *meta;
  // Edges are added last, because an argument may refer to a later node.
  for (size_t i = 0; i < node_args_.size(); ++i) graph.set_args(NodeId(i), node_args_[i].args, node_args_[i].kwargs);
  return true;
}

bool PbReader::read_node(Graph& graph, std::string_view bytes) {
  const size_t position = node_args_.size();
  schema::Node& message = fresh<schema::Node>();
  if (!parse(message, bytes)) return decoder_.in("nodes", position);
  message.set_uid(uid_base_ + uids_.read(message.has_uid(), message.uid()));
  std::optional<PbNodeArgs> args = decode_node(decoder_, graph, message);
  if (args.has_value()) {
    node_args_.push_back(*args);
    return true;
  }
  const std::optional<StringId> name =
      message.name() < decoder_.num_strings() ? decoder_.string(message.name()) : std::nullopt;
  decoder_.error().where.node = name.has_value() ? std::string(module_->text(*name)) : "#" + std::to_string(position);
  return false;
}

bool PbReader::read_graph_field(Graph& graph, const WireField& field) {
  const Extent extent{field.number, field.value, field.payload};
  const bool is_bytes = field.type == WireType::kBytes;
  const bool is_varint = field.type == WireType::kVarint;
  switch (field.number) {
    case G::kNameFieldNumber:
    case G::kKindFieldNumber:
    case G::kNumForwardOutputsFieldNumber:
    case G::kInSpecFieldNumber:
    case G::kOutSpecFieldNumber:
    case G::kOwnerFieldNumber:
    case G::kClassNameFieldNumber:
      if (is_varint) return read_graph_name(graph, field);
      break;
    case G::kOutputsFieldNumber:
      if (is_bytes) return append<schema::OutputSpec>(extent, "outputs", graph.outputs);
      break;
    case G::kAttributesFieldNumber:
      if (is_bytes) return append<schema::Attribute>(extent, "attributes", graph.attributes);
      break;
    case G::kSubclassesFieldNumber:
      if (is_bytes) return append<schema::SubclassLayout>(extent, "subclasses", graph.subclasses);
      break;
    case G::kMetaFieldNumber:
      if (is_bytes) return parse(*graph_meta_.Add(), field.payload);
      break;
    default:
      break;
  }
  graph.unknown.append(field.raw);
  return true;
}

// Reads a scalar field of a graph.
bool PbReader::read_graph_name(Graph& graph, const WireField& field) {
  if (field.number == G::kKindFieldNumber) {
    return decoder_.store(decoder_.enumeration<GraphKind>(static_cast<int>(field.value)), graph.kind, "kind");
  }
  if (field.number == G::kNumForwardOutputsFieldNumber) {
    const uint64_t zigzag = field.value;
    graph.num_forward_outputs = static_cast<int64_t>((zigzag >> 1) ^ (~(zigzag & 1) + 1));
    return true;
  }
  const std::optional<StringId> text = decoder_.optional_string(static_cast<uint32_t>(field.value));
  if (!text.has_value()) return decoder_.in(G::descriptor()->FindFieldByNumber(static_cast<int>(field.number))->name());
  if (field.number == G::kInSpecFieldNumber) graph.in_spec = *text;
  if (field.number == G::kOutSpecFieldNumber) graph.out_spec = *text;
  if (field.number == G::kOwnerFieldNumber) graph.owner = *text;
  if (field.number == G::kClassNameFieldNumber) graph.class_name = *text;
  return true;
}

}  // namespace

Status parse_pb_into(Module& module, std::string_view bytes, const std::string& file, const ReadLimits& limits) {
  silence_protobuf();
  Result<PbEnvelope> envelope = read_envelope(bytes);
  Status status = envelope.ok() ? PbReader(*envelope, limits, module).read() : Status(envelope.error());
  if (!status.ok()) status.error().where.file = file;
  return status;
}

Result<std::unique_ptr<Module>> parse_pb(std::string_view bytes, const std::string& file, const ReadLimits& limits) {
  std::unique_ptr<Module> module = std::make_unique<Module>();
  Status status = parse_pb_into(*module, bytes, file, limits);
  if (!status.ok()) return std::move(status.error());
  return module;
}

}  // namespace fxopt
