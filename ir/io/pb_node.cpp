#include "ir/io/pb_node.h"

#include <utility>

#include "fxgraph.pb.h"

#include "core/bytes.h"
#include "core/check.h"
#include "ir/io/pb_decode.h"
#include "ir/io/pb_encode.h"
#include "ir/io/pb_unknown.h"

namespace fxopt {
namespace {

constexpr int kMaxMarkers = 32;  // bits of Node::phase_markers

class NodeDecoder {
 public:
  NodeDecoder(PbDecoder& decoder, Graph& graph, const schema::Node& message)
      : decoder_(decoder), graph_(graph), message_(message) {}

  std::optional<PbNodeArgs> read() {
    if (!add() || !read_enums() || !read_value() || !read_places()) return std::nullopt;
    NodeExtra extra;
    if (!read_extra(extra)) return std::nullopt;
    if (!extra.is_empty()) graph_.mutable_extra(id_) = std::move(extra);
    const std::optional<ArgRange> meta = decoder_.meta(message_.meta());
    if (!meta.has_value()) return std::nullopt;
    graph_.set_meta(id_, *meta);
    const std::optional<ArgRange> args = decoder_.args(message_.args());
    if (!args.has_value()) return std::nullopt;
    const std::optional<ArgRange> kwargs = decoder_.kwargs(message_.kwargs());
    if (!kwargs.has_value()) return std::nullopt;
    return PbNodeArgs{*args, *kwargs};
  }

 private:
  bool add();
  bool read_enums();
  bool read_value();
  bool read_places();
  bool read_extra(NodeExtra& extra);
  bool read_control(NodeExtra& extra);
  bool read_streams(NodeExtra& extra);

  template <class Record, class Message>
  bool optional_record(bool present, const Message& message, std::optional<Record>& to, std::string_view name) {
    return !present || decoder_.store(decoder_.record<Record>(message), to, name);
  }

  PbDecoder& decoder_;
  Graph& graph_;
  const schema::Node& message_;
  NodeId id_;
};

bool NodeDecoder::add() {
  NodeKind kind{};
  StringId name;
  TargetId target;
  if (!decoder_.store(decoder_.enumeration<NodeKind>(message_.kind()), kind, "kind") ||
      !decoder_.store(decoder_.string(message_.name()), name, "name") ||
      !decoder_.store(decoder_.target(message_.target()), target, "target")) {
    return false;
  }
  if (graph_.find(name).is_valid()) {
    return decoder_.fail(ErrorCode::kDuplicateName, "two nodes are named " + quote(graph_.module().text(name)));
  }
  if (message_.uid() == UINT64_MAX) {
    decoder_.fail(ErrorCode::kLimit, "uid " + std::to_string(message_.uid()) + " is too large");
    return decoder_.in("uid");
  }
  id_ = graph_.add_node(kind, name, target, message_.uid());
  return true;
}

bool NodeDecoder::read_enums() {
  Node& node = graph_[id_];
  if (!decoder_.store(decoder_.enumeration<Phase>(message_.phase()), node.phase, "phase") ||
      !decoder_.store(decoder_.enumeration<Tag>(message_.tag()), node.tag, "tag")) {
    return false;
  }
  for (int i = 0; i < message_.phase_markers_size(); ++i) {
    const int marker = static_cast<int>(message_.phase_markers(i));
    if (marker < 0 || marker >= kMaxMarkers) {
      decoder_.fail(ErrorCode::kLimit, "phase marker " + std::to_string(marker) + " is not between 0 and 31");
      return decoder_.in("phase_markers", static_cast<size_t>(i));
    }
    node.phase_markers |= uint32_t{1} << marker;
  }
  node.has_seq_nr = message_.has_seq_nr();
  node.seq_nr = message_.seq_nr();
  return true;
}

bool NodeDecoder::read_value() {
  return !message_.has_value() || decoder_.store(decoder_.value(message_.value()), graph_[id_].value, "value");
}

bool NodeDecoder::read_places() {
  Node& node = graph_[id_];
  if (message_.has_module_path() &&
      !decoder_.store(decoder_.string(message_.module_path()), node.module_path, "module_path")) {
    return false;
  }
  if (!decoder_.text(message_.module_path_source(), node.module_path_source, "module_path_source")) return false;
  if (message_.has_region()) {
    Region region;
    if (!decoder_.store(decoder_.region(message_.region()), region, "region")) return false;
    node.region = graph_.module().region(region);
  }
  if (message_.has_source()) {
    Source source;
    if (!decoder_.store(decoder_.source(message_.source()), source, "source")) return false;
    node.source = graph_.module().source(source);
  }
  return true;
}

bool NodeDecoder::read_extra(NodeExtra& extra) {
  if (!decoder_.store(decoder_.enumeration<Capture>(message_.capture()), extra.capture, "capture")) return false;
  bool control_unknown = false;
  for (const schema::ControlDep& dep : message_.control()) control_unknown |= has_own_unknown(dep);
  if (control_unknown || has_own_unknown(message_)) extra.unknown = unknown_fragment(message_);
  return optional_record(message_.has_verdict(), message_.verdict(), extra.verdict, "verdict") &&
         optional_record(message_.has_mark_verdict(), message_.mark_verdict(), extra.mark_verdict, "mark_verdict") &&
         optional_record(message_.has_tag_source(), message_.tag_source(), extra.tag_source, "tag_source") &&
         optional_record(message_.has_bucket(), message_.bucket(), extra.bucket, "bucket") &&
         optional_record(message_.has_input(), message_.input(), extra.input, "input") &&
         optional_record(message_.has_rng(), message_.rng(), extra.rng, "rng") &&
         decoder_.records(message_.origins(), extra.origins, "origins") &&
         decoder_.records(message_.remarks(), extra.remarks, "remarks") && read_control(extra) && read_streams(extra);
}

bool NodeDecoder::read_control(NodeExtra& extra) {
  for (int i = 0; i < message_.control_size(); ++i) {
    const std::optional<ControlKind> kind = decoder_.enumeration<ControlKind>(message_.control(i).kind());
    if (!kind.has_value()) return decoder_.in("control", static_cast<size_t>(i));
    const std::optional<NodeId> node = decoder_.node_id(message_.control(i).node());
    if (!node.has_value()) return decoder_.in("control", static_cast<size_t>(i));
    extra.control.push_back(ControlDep{*node, *kind});
  }
  return true;
}

bool NodeDecoder::read_streams(NodeExtra& extra) {
  if (message_.has_stream()) {
    extra.stream = decoder_.string(message_.stream());
    if (!extra.stream.has_value()) return decoder_.in("stream");
  }
  return decoder_.strings(message_.event_record(), extra.event_record, "event_record") &&
         decoder_.strings(message_.event_wait(), extra.event_wait, "event_wait");
}

void encode_extra(PbEncoder& encoder, const Graph& graph, const NodeExtra& extra, schema::Node& message) {
  if (extra.verdict.has_value()) encoder.record(*extra.verdict, *message.mutable_verdict());
  if (extra.mark_verdict.has_value()) encoder.record(*extra.mark_verdict, *message.mutable_mark_verdict());
  if (extra.tag_source.has_value()) encoder.record(*extra.tag_source, *message.mutable_tag_source());
  for (const Origin& origin : extra.origins) encoder.record(origin, *message.add_origins());
  for (const ControlDep& dep : extra.control) {
    FXOPT_CHECK(!graph[dep.node].erased, "control dependency on an erased node");
    schema::ControlDep& item = *message.add_control();
    item.set_node(graph.position(dep.node));
    item.set_kind(static_cast<schema::ControlKind>(dep.kind));
  }
  if (extra.stream.has_value()) message.set_stream(encoder.string(*extra.stream));
  if (extra.bucket.has_value()) encoder.record(*extra.bucket, *message.mutable_bucket());
  message.set_capture(static_cast<schema::Capture>(extra.capture));
  for (const Remark& remark : extra.remarks) encoder.record(remark, *message.add_remarks());
  if (extra.input.has_value()) encoder.record(*extra.input, *message.mutable_input());
  if (extra.rng.has_value()) encoder.record(*extra.rng, *message.mutable_rng());
  for (const StringId event : extra.event_record) message.add_event_record(encoder.string(event));
  for (const StringId event : extra.event_wait) message.add_event_wait(encoder.string(event));
}

}  // namespace

std::optional<PbNodeArgs> decode_node(PbDecoder& decoder, Graph& graph, const schema::Node& message) {
  return NodeDecoder(decoder, graph, message).read();
}

void encode_node(PbEncoder& encoder, const Graph& graph, NodeId id, schema::Node& message) {
  const Node& node = graph[id];
  const Module& module = graph.module();
  message.set_kind(static_cast<schema::NodeKind>(node.kind));
  message.set_name(encoder.string(node.name));
  if (node.target.is_valid()) message.set_target(encoder.string(module.target(node.target).name));
  encoder.args(node.args, *message.mutable_args());
  encoder.kwargs(node.kwargs, *message.mutable_kwargs());
  if (node.value.is_valid() && graph.pool().value(node.value).kind != ValueKind::kAbsent) {
    encoder.value(node.value, *message.mutable_value());
  }
  message.set_uid(node.uid);
  message.set_phase(static_cast<schema::Phase>(node.phase));
  for (int marker = 0; marker < kMaxMarkers; ++marker) {
    if ((node.phase_markers >> marker & 1U) != 0) message.add_phase_markers(static_cast<schema::PhaseMarker>(marker));
  }
  message.set_tag(static_cast<schema::Tag>(node.tag));
  if (node.region.is_valid()) encoder.record(module.region(node.region), *message.mutable_region());
  if (node.module_path.is_valid()) message.set_module_path(encoder.string(node.module_path));
  message.set_module_path_source(encoder.string(node.module_path_source));
  if (node.has_seq_nr) message.set_seq_nr(node.seq_nr);
  if (node.source.is_valid()) encoder.record(module.source(node.source), *message.mutable_source());
  const NodeExtra* extra = graph.extra(id);
  if (extra != nullptr) encode_extra(encoder, graph, *extra, message);
  encoder.meta(node.meta, *message.mutable_meta());
  if (extra != nullptr) encoder.restore(message, extra->unknown);
}

}  // namespace fxopt
