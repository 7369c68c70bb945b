#include "cli/report/explain.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "cli/print/json.h"
#include "cli/print/json_list.h"
#include "cli/print/nodes.h"
#include "cli/print/table.h"
#include "cli/report/memory/costs.h"
#include "core/bytes.h"
#include "core/saturate.h"
#include "core/text.h"
#include "ir/alias/effect_map.h"
#include "ir/step/tag_rules.h"
#include "ir/values/values.h"
#include "passes/recompute/verdicts.h"

namespace fxopt {
namespace {

constexpr size_t kMaxNames = 8;

class Explainer {
 public:
  Explainer(const Footprint& footprint, NodeId node)
      : footprint_(footprint),
        graph_(*footprint.graph),
        node_(node),
        phases_(footprint.phases),
        effects_(graph_),
        storages_(footprint.storages),
        report_(footprint.memory) {
    for (const NodeId each : graph_.nodes()) schedule_.push_back(each);
  }

  Explanation run() {
    describe();
    const std::vector<BufferId> ids = find_readers();
    const StringId device = ids.empty() ? StringId() : storages_.buffer(ids.front()).device;
    for (const DeviceFootprint& each : footprint_.devices) {
      if (each.device != device) continue;
      result_.peak_device = graph_.module().text(device);
      result_.peak_node = graph_.name_of(each.requested.node);
      result_.peak_bytes = each.requested.bytes;
      peak_place_ = each.place;
    }
    for (size_t i = 0; i < ids.size(); ++i) result_.storages.push_back(storage(ids[i], readers_[i]));
    for (const DeviceFootprint& each : footprint_.devices) result_.is_steady |= each.trace.is_steady;
    if (result_.is_steady) find_kept(ids);
    decide();
    return std::move(result_);
  }

 private:
  void describe() {
    const Module& module = graph_.module();
    const Node& node = graph_[node_];
    result_.node = graph_.name_of(node_);
    result_.type = value_text(graph_, graph_.value(node_));
    result_.target = target_text(graph_, node_);
    result_.module_path = module.text(node.module_path);
    result_.source = source_text(graph_, node_);
    result_.phase = name_of(phases_.phase[node_]);
    if (node.tag != Tag::kNone) result_.tag = name_of(node.tag);
  }

  std::string name_at(uint32_t place) const { return std::string(graph_.name_of(schedule_[place])); }

  // Returns the node's storages, and fills readers_ in one walk over the schedule.
  std::vector<BufferId> find_readers() {
    std::vector<BufferId> ids;
    IdMap<BufferId, uint32_t> numbers(storages_.num_buffers(), 0);  // index in `ids`, plus 1
    for (const BufferId id : storages_.buffers(node_)) {
      if (!id.is_valid() || numbers.get(id) != 0) continue;
      ids.push_back(id);
      numbers[id] = static_cast<uint32_t>(ids.size());
    }
    readers_.resize(ids.size());
    for (const NodeId each : schedule_) {
      for (const BufferId id : storages_.reads(each)) {
        if (id.is_valid() && numbers.get(id) != 0) readers_[numbers.get(id) - 1].push_back(each);
      }
    }
    return ids;
  }

  StorageFacts storage(BufferId id, const std::vector<NodeId>& readers) const {
    const Buffer& buffer = storages_.buffer(id);
    const Lifetime& life = report_.lifetimes[id.index()];
    StorageFacts facts;
    facts.producer = graph_.name_of(buffer.producer);
    facts.bytes = life.bytes;
    facts.known = life.known;
    facts.kind = memory_class_name(life.kind);
    facts.device = graph_.module().text(buffer.device);
    facts.first = name_at(life.first);
    facts.last = name_at(life.last);
    const auto is_at_peak = [&](const Lifetime& stay) {
      return stay.buffer == id && stay.first <= peak_place_ && peak_place_ <= stay.last;
    };
    facts.at_peak =
        report_.is_resized(id) ? std::any_of(report_.stays.begin(), report_.stays.end(), is_at_peak) : is_at_peak(life);
    for (const NodeId each : readers) {
      facts.readers.emplace_back(graph_.name_of(each));
      if (graph_.position(each) > peak_place_) ++facts.readers_behind_peak;
    }
    const NodeId last_reader = readers.empty() ? NodeId() : readers.back();
    facts.kept_by = keeper(id, last_reader);
    return facts;
  }

  std::string keeper(BufferId id, NodeId last_reader) const {
    const Buffer& buffer = storages_.buffer(id);
    const Lifetime& life = report_.lifetimes[id.index()];
    if (buffer.source == BufferSource::kAttribute) return "a constant of the module, live throughout";
    const bool at_end = life.last + 1 == schedule_.size();
    if (buffer.source == BufferSource::kPlaceholder && at_end) return "the caller, who owns the input";
    if (at_end && storages_.is_returned(id)) return "the caller, to whom the graph returns it";
    if (last_reader.is_valid() && graph_.position(last_reader) == life.last) {
      return "%" + name_at(life.last) + ", its last reader";
    }
    if (takes_from_value_of(schedule_[life.last], id))
      return "%" + name_at(life.last) + ", which takes the last element of the value that contains this storage";
    if (life.last == life.first) return "nothing: the storage is freed at once";
    return "%" + name_at(life.last) +
           ", because a collective or a keep-alive dependency holds the storage until this node";
  }

  // True for a getitem of a value that contains the storage.
  bool takes_from_value_of(NodeId node, BufferId id) const {
    if (graph_.op(node).view != ViewKind::kProjection || !first_argument(graph_, node).is_valid()) return false;
    const std::span<const BufferId> parts = storages_.buffers(first_argument(graph_, node));
    return std::find(parts.begin(), parts.end(), id) != parts.end();
  }

  // Finds the memory kept between steps because of the storages `ids`. A parameter includes its
  // gradient, and a gradient includes its parameter.
  void find_kept(const std::vector<BufferId>& ids) {
    IdMap<BufferId, bool> has;
    for (const BufferId id : ids) has[id] = true;
    for (const auto& [gradient, parameter] : report_.gradients) {
      if (parameter.is_valid() && has.get(gradient)) has[parameter] = true;
    }
    for (const auto& [gradient, parameter] : report_.gradients) {
      if (parameter.is_valid() && has.get(parameter)) has[gradient] = true;
    }
    for (const DeviceFootprint& device : footprint_.devices) {
      for (const TraceBlock& block : device.trace.blocks) {
        if (block.source != BlockSource::kKept || !has.get(device.trace.blocks[block.like].buffer)) continue;
        result_.kept.push_back({std::string(block.label), std::string(graph_.name_of(block.node)),
                                std::string(memory_class_name(block.kind)),
                                std::string(graph_.module().text(device.device)), block.bytes});
      }
    }
  }

  // Sets the outcome of the tag: the verdict of a pass or, without one, the forecast for remat.
  // Also sets whether backward gets the value saved or recomputed.
  void decide() {
    if (graph_[node_].kind == NodeKind::kPlaceholder) return;
    const TagForecast forecast = forecast_tags(graph_, RematOptions());
    const NodeExtra* extra = graph_.extra(node_);
    const bool is_judged = extra != nullptr && extra->verdict.has_value();
    const TagVerdict verdict = is_judged ? *extra->verdict : forecast.verdicts[node_];
    const std::string reason = std::string(tag_rule(verdict.rule).reason);
    if (graph_[node_].tag != Tag::kNone) {
      result_.verdict = name_of(verdict.verdict);
      result_.verdict += ": " + (verdict.verdict == Verdict::kMoot ? "backward does not read the value" : reason);
      result_.is_forecast = !is_judged;
    }
    if (phases_.is_backward(node_) || !forecast.needed[node_]) return;
    result_.is_recomputed = forecast.recomputed[node_];
    result_.decision = result_.is_recomputed ? "recomputed: " : "saved: ";
    result_.decision += tag_rule(forecast.verdicts[node_].rule).reason;
    const std::string_view why = why_unrepeatable(graph_, node_, effects_);
    if (!why.empty()) result_.decision += "; the node " + std::string(why);
  }

  const Footprint& footprint_;
  const Graph& graph_;
  NodeId node_;
  const PhaseMap& phases_;
  EffectMap effects_;
  const StorageMap& storages_;
  const MemoryReport& report_;
  std::vector<NodeId> schedule_;
  uint32_t peak_place_ = 0;
  std::vector<std::vector<NodeId>> readers_;  // for each storage of the node, in schedule order
  Explanation result_;
};

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMaxNames; ++i) {
    text += (i == 0 ? "%" : ", %") + printable_line(names[i]);
  }
  if (names.size() > kMaxNames) text += ", and " + std::to_string(names.size() - kMaxNames) + " more";
  return text.empty() ? "none" : text;
}

void print_storage(std::ostream& out, const Explanation& explanation, const StorageFacts& facts) {
  out << "storage of " << (facts.known ? bytes_text(facts.bytes) : std::string("unknown size")) << ", " << facts.kind;
  if (!facts.device.empty()) out << ", " << printable_line(facts.device);
  out << "\n  made by    %" << printable_line(facts.producer);
  if (facts.producer != explanation.node) out << ", of which %" << printable_line(explanation.node) << " is a view";
  out << "\n  live       %" << printable_line(facts.first) << " .. %" << printable_line(facts.last) << "\n  kept by    "
      << printable_line(facts.kept_by) << "\n  read by    " << names_text(facts.readers);
  if (facts.readers_behind_peak > 0) out << "; " << facts.readers_behind_peak << " after the peak";
  out << "\n  at the peak: " << (facts.at_peak ? "live" : "not live");
  if (facts.at_peak && explanation.peak_bytes > 0) {
    out << ", " << percent_text(facts.bytes, explanation.peak_bytes) << " of the peak";
  }
  out << '\n';
}

void print_kept(std::ostream& out, const std::vector<KeptFacts>& kept) {
  if (kept.empty()) return;
  int64_t bytes = 0;
  for (const KeptFacts& facts : kept) bytes = saturating_add(bytes, facts.bytes);
  out << "kept between steps because of this node: " << bytes_text(bytes) << '\n';
  Table table({Align::kLeft, Align::kRight, Align::kLeft});
  for (const KeptFacts& facts : kept) {
    table.add({facts.label, bytes_text(facts.bytes), "for %" + facts.node});
  }
  table.print(out);
}

void print_what_if(std::ostream& out, const WhatIf& what_if, bool has_seconds) {
  const bool saves = what_if.tag == Tag::kMustSave;
  out << (saves ? "if it were saved\n" : "if it were recomputed\n");
  if (!what_if.refusal.empty()) {
    out << "  not possible: " << printable_line(what_if.refusal) << '\n';
    return;
  }
  out << "  " << (saves ? "no longer recomputed: " : "recomputed: ") << what_if.copies.size() << " ("
      << names_text(what_if.copies) << ")\n";
  out << "  " << (saves ? "less work: " : "more work: ") << gflop_text(what_if.work.flops) << ", "
      << bytes_text(what_if.work.bytes) << " moved";
  if (has_seconds) out << ", " << kernel_time_text(what_if.work);
  if (what_if.work.unknown > 0) out << ", plus " << count_text(what_if.work.unknown, "call") << " of unknown work";
  if (const size_t collectives = what_if.work.num_collectives(); collectives > 0) {
    out << ", and " << count_text(collectives, "collective") << " (" << link_time_text(what_if.work) << ")";
  }
  out << '\n';
  Table table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.add({"peak", what_if.has_carried_out ? "after remat" : "as it is", "then", "change"});
  for (const DevicePeaks& before : what_if.before) {
    for (const DevicePeaks& after : what_if.after) {
      if (after.device != before.device) continue;
      for (size_t i = 0; i < kNumMemoryMetrics; ++i) {
        const MemoryMetric metric = static_cast<MemoryMetric>(i);
        const std::optional<PeakRow>&left = before.peaks[i], &right = after.peaks[i];
        if (!left.has_value() || !right.has_value()) continue;
        const int64_t change = right->bytes - left->bytes;
        const auto cell = [](const PeakRow& peak) { return peak.cut ? "out of memory" : bytes_text(peak.bytes); };
        std::string name(metric_name(metric));
        if (is_of_allocator(metric)) name += what_if.expandable ? ", expandable" : ", classic";
        table.add({name + ", " + (before.device.empty() ? "no device" : before.device), cell(*left), cell(*right),
                   left->cut || right->cut ? "" : (change < 0 ? "-" : "+") + bytes_text(std::abs(change))});
      }
    }
  }
  table.print(out);
}

nlohmann::ordered_json peaks_json(const std::vector<DevicePeaks>& devices) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const DevicePeaks& device : devices) {
    nlohmann::ordered_json& row = list.emplace_back();
    row["device"] = device.device;
    for (size_t i = 0; i < kNumMemoryMetrics; ++i) {
      const std::optional<PeakRow>& peak = device.peaks[i];
      if (!peak.has_value()) continue;
      row[std::string(metric_name(static_cast<MemoryMetric>(i)))] = {
          {"bytes", peak->cut ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(peak->bytes)},
          {"node", peak->node}};
    }
  }
  return list;
}

nlohmann::ordered_json kept_json(const KeptFacts& facts) {
  return {{"label", facts.label},
          {"node", facts.node},
          {"class", facts.kind},
          {"device", facts.device},
          {"bytes", facts.bytes}};
}

}  // namespace

Explanation explain_node(const Footprint& footprint, NodeId node) { return Explainer(footprint, node).run(); }

std::vector<DevicePeaks> peaks_of(const Footprint& footprint, bool expandable) {
  std::vector<DevicePeaks> list;
  for (const DeviceFootprint& device : footprint.devices) {
    DevicePeaks& row = list.emplace_back();
    row.device = footprint.graph->module().text(device.device);
    for (size_t i = 0; i < kNumMemoryMetrics; ++i) {
      const std::optional<FootprintPeak> peak = device.peak(static_cast<MemoryMetric>(i), expandable);
      if (!peak.has_value()) continue;
      row.peaks[i] = {peak->bytes, peak->node.is_valid() ? std::string(footprint.graph->name_of(peak->node)) : "",
                      peak->cut};
    }
  }
  return list;
}

void print_explanation(std::ostream& out, const Explanation& explanation, bool has_seconds) {
  out << '%' << printable_line(explanation.node) << ": " << printable_line(explanation.type);
  for (const std::string& part : {explanation.target, explanation.phase, explanation.module_path, explanation.source}) {
    if (!part.empty()) out << ", " << printable_line(part);
  }
  out << '\n';
  if (!explanation.tag.empty()) {
    out << "  tagged     " << explanation.tag
        << (explanation.is_forecast ? "; no pass has judged the tag; with remat it would be " : ", ")
        << explanation.verdict << '\n';
  }
  const bool is_future = explanation.is_forecast && explanation.is_recomputed;
  if (!explanation.decision.empty()) {
    out << "  backward   " << (is_future ? "reads the value; after remat, it is " : "") << explanation.decision << '\n';
  }
  if (explanation.storages.empty()) out << "  the value has no storage, so it is never live\n";
  for (const StorageFacts& facts : explanation.storages) print_storage(out, explanation, facts);
  print_kept(out, explanation.kept);
  if (!explanation.peak_node.empty()) {
    out << "the peak of " << bytes_text(explanation.peak_bytes) << " is at %" << printable_line(explanation.peak_node)
        << '\n';
  }
  if (explanation.what_if.has_value()) print_what_if(out, *explanation.what_if, has_seconds);
}

nlohmann::ordered_json explanation_json(const Explanation& explanation, bool has_seconds) {
  using Json = nlohmann::ordered_json;
  Json storages = Json::array();
  for (const StorageFacts& facts : explanation.storages) {
    storages.push_back({{"made_by", facts.producer},
                        {"bytes", facts.known ? Json(facts.bytes) : Json(nullptr)},
                        {"class", facts.kind},
                        {"device", facts.device},
                        {"first", facts.first},
                        {"last", facts.last},
                        {"kept_by", facts.kept_by},
                        {"readers", facts.readers},
                        {"readers_behind_peak", facts.readers_behind_peak},
                        {"at_peak", facts.at_peak}});
  }
  Json what_if = nullptr;
  if (explanation.what_if.has_value()) {
    const WhatIf& tried = *explanation.what_if;
    what_if = {{"tag", name_of(tried.tag)},
               {"refusal", tried.refusal},
               {"copies", tried.copies},
               {"before", peaks_json(tried.before)},
               {"after", peaks_json(tried.after)}};
    what_if.update(cost_json(tried.work, has_seconds));
  }
  return {{"node", explanation.node},
          {"type", explanation.type},
          {"target", explanation.target},
          {"module_path", explanation.module_path},
          {"source", explanation.source},
          {"phase", explanation.phase},
          {"tag", explanation.tag},
          {"verdict", explanation.verdict},
          {"decision", explanation.decision},
          {"peak",
           {{"device", explanation.peak_device}, {"node", explanation.peak_node}, {"bytes", explanation.peak_bytes}}},
          {"storages", std::move(storages)},
          {"kept_between_steps", explanation.is_steady ? json_list(explanation.kept, kept_json) : Json(nullptr)},
          {"what_if", std::move(what_if)}};
}

}  // namespace fxopt
