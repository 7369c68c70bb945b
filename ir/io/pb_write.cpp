// Writes the binary form. Only one node at a time is a protobuf object. A finished graph is a byte
// string. The string table is written last, but comes first in the file.
#include <utility>

#include "fxgraph.pb.h"

#include "core/check.h"
#include "ir/io/io.h"
#include "ir/io/pb_encode.h"
#include "ir/io/pb_envelope.h"
#include "ir/io/pb_ids.h"
#include "ir/io/pb_node.h"
#include "ir/io/pb_wire.h"

namespace fxopt {
namespace {

using M = schema::Module;
using G = schema::Graph;

class PbWriter {
 public:
  explicit PbWriter(const Module& module) : module_(module), encoder_(module) {}

  Result<std::string> write();

 private:
  void append(std::string& out, uint32_t number, const google::protobuf::Message& message);
  template <class Message, class Record>
  void append_records(std::string& out, uint32_t number, const std::vector<Record>& records);
  template <class Message, class Record>
  void append_record(std::string& out, uint32_t number, const Record& record);
  template <class Message>
  void append_carried(uint32_t number, const std::optional<std::string>& bytes);
  void append_meta(std::string& out, uint32_t number, ArgRange range);
  void append_graph(const Graph& graph);
  void append_records_of(const Graph& graph, std::string& out);
  void append_module_records();
  void append_counters(schema::Counters& counters);
  void append_last();
  std::string string_table() const;
  bool is_full() const { return size_ > kMaxPbBytes; }

  const Module& module_;
  PbEncoder encoder_;
  // The serialized module; the string table goes first.
  std::vector<std::string> parts_{std::string()};
  uint64_t size_ = 0;  // bytes written by append()
  uint64_t num_nodes_ = 0;
  CountedIds uids_, storage_ids_;
};

void PbWriter::append(std::string& out, uint32_t number, const google::protobuf::Message& message) {
  const size_t size = message.ByteSizeLong();
  size_ += size;
  if (is_full()) return;
  append_bytes_header(out, number, size);
  const size_t start = out.size();
  out.resize(start + size);
  message.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(out.data()) + start);
}

template <class Message, class Record>
void PbWriter::append_record(std::string& out, uint32_t number, const Record& record) {
  Message message;
  encoder_.record(record, message);
  append(out, number, message);
}

template <class Message, class Record>
void PbWriter::append_records(std::string& out, uint32_t number, const std::vector<Record>& records) {
  for (const Record& record : records) append_record<Message>(out, number, record);
}

template <class Message>
void PbWriter::append_carried(uint32_t number, const std::optional<std::string>& bytes) {
  if (!bytes.has_value()) return;
  Message message;
  encoder_.restore(message, *bytes);
  append(parts_.back(), number, message);
}

void PbWriter::append_meta(std::string& out, uint32_t number, ArgRange range) {
  google::protobuf::RepeatedPtrField<schema::MetaEntry> entries;
  encoder_.meta(range, entries);
  for (const schema::MetaEntry& entry : entries) append(out, number, entry);
}

void PbWriter::append_records_of(const Graph& graph, std::string& out) {
  append_records<schema::OutputSpec>(out, G::kOutputsFieldNumber, graph.outputs);
  append_records<schema::Attribute>(out, G::kAttributesFieldNumber, graph.attributes);
  schema::Graph fields;
  if (graph.num_forward_outputs.has_value()) fields.set_num_forward_outputs(*graph.num_forward_outputs);
  fields.set_in_spec(encoder_.string(graph.in_spec));
  fields.set_out_spec(encoder_.string(graph.out_spec));
  fields.AppendToString(&out);
  append_records<schema::SubclassLayout>(out, G::kSubclassesFieldNumber, graph.subclasses);
  fields.Clear();
  fields.set_owner(encoder_.string(graph.owner));
  fields.set_class_name(encoder_.string(graph.class_name));
  fields.AppendToString(&out);
}

void PbWriter::append_graph(const Graph& graph) {
  encoder_.enter(&graph);
  std::string out;
  schema::Graph fields;
  fields.set_name(encoder_.string(graph.name()));
  fields.set_kind(static_cast<schema::GraphKind>(graph.kind));
  fields.AppendToString(&out);
  schema::Node message;
  for (const NodeId id : graph.nodes()) {
    message.Clear();
    encode_node(encoder_, graph, id, message);
    if (!uids_.must_give(graph[id].uid)) message.clear_uid();
    append(out, G::kNodesFieldNumber, message);
    if (is_full()) return;
    if (encoder_.error().has_value()) {
      encoder_.error()->where.graph = module_.text(graph.name());
      encoder_.error()->where.node = graph.name_of(id);
      return;
    }
  }
  append_records_of(graph, out);
  append_meta(out, G::kMetaFieldNumber, graph.meta);
  fields.Clear();
  encoder_.restore(fields, graph.unknown);
  fields.AppendToString(&out);
  num_nodes_ += graph.num_nodes();
  append_bytes_header(parts_.back(), M::kGraphsFieldNumber, out.size());
  parts_.push_back(std::move(out));
  parts_.emplace_back();
  encoder_.enter(nullptr);
}

void PbWriter::append_module_records() {
  std::string& out = parts_.back();
  append_records<schema::Invocation>(out, M::kInvocationsFieldNumber, module_.invocations);
  append_records<schema::Symbol>(out, M::kSymbolsFieldNumber, module_.symbols);
  append_records<schema::Assertion>(out, M::kAssertionsFieldNumber, module_.assertions);
  schema::Storage message;
  for (size_t i = 0; i < module_.num_storages(); ++i) {
    const StorageRecord& storage = module_.storage(StorageId(i));
    message.Clear();
    encoder_.record(storage, message);
    if (!storage_ids_.must_give(storage.id)) message.clear_id();
    append(out, M::kStoragesFieldNumber, message);
  }
  append_records<schema::ProcessGroup>(out, M::kGroupsFieldNumber, module_.groups);
  append_records<schema::DeviceMesh>(out, M::kMeshesFieldNumber, module_.meshes);
  append_records<schema::OpSchema>(out, M::kOpSchemasFieldNumber, module_.op_schemas);
  append_records<schema::Constant>(out, M::kConstantsFieldNumber, module_.constants);
  append_records<schema::RngSlot>(out, M::kRngSlotsFieldNumber, module_.rng_slots);
  append_records<schema::Stream>(out, M::kStreamsFieldNumber, module_.streams);
  if (module_.rank.has_value()) append_record<schema::RankContext>(out, M::kRankFieldNumber, *module_.rank);
}

void PbWriter::append_counters(schema::Counters& counters) {
  counters.set_next_uid(module_.next_uid);
  counters.set_next_storage(module_.next_storage);
  for (const Module::PlacedCounter& counter : module_.placed_counters()) {
    schema::NameCounter& entry = *counters.add_names();
    entry.set_graph(counter.graph);
    entry.set_base(encoder_.string(std::string(counter.base)));
    entry.set_next(counter.next);
  }
}

void PbWriter::append_last() {
  std::string& out = parts_.back();
  schema::Module last;
  append_counters(*last.mutable_counters());
  encoder_.restore(last, module_.unknown);
  append(out, M::kCountersFieldNumber, last.counters());
  last.clear_counters();
  append_records<schema::ErasedNode>(out, M::kErasedFieldNumber, module_.erased);
  append_meta(out, M::kMetaFieldNumber, module_.meta);
  append_carried<schema::Profile>(M::kProfileFieldNumber, module_.profile);
  append_carried<schema::MemoryPlan>(M::kMemoryPlanFieldNumber, module_.memory_plan);
  if (module_.certificate.has_value()) {
    append_record<schema::Certificate>(out, M::kCertificateFieldNumber, *module_.certificate);
  }
  last.AppendToString(&out);  // only unknown fields
}

std::string PbWriter::string_table() const {
  std::string out;
  size_t size = 0;
  for (const std::string_view text : encoder_.strings()) size += text.size() + 4;
  out.reserve(size);
  for (const std::string_view text : encoder_.strings()) append_bytes_field(out, M::kStringsFieldNumber, text);
  return out;
}

Result<std::string> PbWriter::write() {
  schema::Module fields;
  fields.set_name(encoder_.string(module_.name));
  fields.AppendToString(&parts_.back());
  if (module_.producer.has_value())
    append_record<schema::Producer>(parts_.back(), M::kProducerFieldNumber, *module_.producer);
  for (const GraphId id : module_.graphs()) {
    if (is_full() || encoder_.error().has_value()) break;
    append_graph(module_.graph(id));
  }
  append_module_records();
  append_last();
  if (encoder_.error().has_value()) return *encoder_.error();
  if (std::optional<Error> refused = refuse_pb_size(size_)) return *std::move(refused);
  const PbCounts counts{module_.num_graphs(), num_nodes_, encoder_.strings().size(), module_.num_storages()};
  parts_.insert(parts_.begin(), string_table());
  return write_envelope(counts, std::move(parts_));
}

}  // namespace

Result<std::string> print_pb(const Module& module) {
  silence_protobuf();
  return PbWriter(module).write();
}

}  // namespace fxopt
