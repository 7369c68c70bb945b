#include "ir/ranks/ranks.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>

#include "core/hash.h"
#include "core/text.h"
#include "ir/alias/collective_table.h"
#include "ir/alias/effects.h"
#include "ir/graph/top_level.h"
#include "ir/values/call_args.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

class Tracer {
 public:
  Tracer(const Module& module, int64_t rank, const std::string& file) : module_(module) {
    trace_.rank = rank;
    trace_.file = file;
  }

  RankTrace run() {
    std::vector<GraphId> graphs;
    for (const Invocation& invocation : module_.invocations) {
      if (const GraphId id = module_.find_graph(invocation.graph); id.is_valid()) graphs.push_back(id);
    }
    if (graphs.empty()) graphs = top_level_graphs(module_);
    for (const GraphId id : graphs) read(module_.graph(id));
    for (const GraphId id : module_.graphs()) {
      if (std::ranges::find(graphs, id) != graphs.end()) continue;
      const Graph& graph = module_.graph(id);
      for (const NodeId node : graph.nodes()) {
        trace_.hidden += graph[node].is_call() && graph.op(node).has(Effect::kCollective) ? 1 : 0;
      }
    }
    return std::move(trace_);
  }

 private:
  void read(const Graph& graph) {
    for (const Collective& one : find_collectives(graph, {})) {
      check_waits(graph, one);
      const std::optional<uint32_t> group = group_of(one);
      if (!group.has_value()) {
        ++trace_.unknown;
        continue;
      }
      add_call(graph, one, *group);
    }
  }

  std::optional<uint32_t> group_of(const Collective& one) {
    if (one.listed == nullptr) return std::nullopt;
    const RankGroup group = {std::string(module_.text(one.listed->uid)), one.listed->ranks};
    const auto [found, is_new] = places_.emplace(group, static_cast<uint32_t>(trace_.groups.size()));
    if (is_new) trace_.groups.push_back(group);
    return found->second;
  }

  void check_waits(const Graph& graph, const Collective& one) {
    const std::string name = "%" + std::string(graph.name_of(one.start));
    const Op& op = graph.op(one.start);
    if (op.has(Effect::kWaits)) return;
    if (one.waits.empty() && op.leaves_wait_to_graph() && !returns_nothing(graph, one.start)) {
      trace_.undisciplined.push_back("no wait completes " + name);
    }
    for (const NodeId user : graph.users(one.start)) {
      const bool is_wait = graph[user].is_call() && graph.op(user).has(Effect::kWaits);
      const bool is_part = graph[user].is_call() && view_of_call(graph, user) == ViewKind::kProjection;
      const bool is_size = graph.value(user).kind == ValueKind::kSymbolic;
      if (is_wait || is_part || is_size || one.waits.empty()) continue;
      if (graph[user].kind != NodeKind::kOutput && graph.position(user) > graph.position(one.waits.front())) continue;
      trace_.undisciplined.push_back("%" + std::string(graph.name_of(user)) + " reads " + name + " before a wait");
    }
  }
  static bool returns_nothing(const Graph& graph, NodeId node) { return graph.value(node).kind == ValueKind::kNone; }

  void add_call(const Graph& graph, const Collective& one, uint32_t group) {
    RankCall call;
    call.group = group;
    call.graph = module_.text(graph.name());
    call.node = graph.name_of(one.start);
    const std::string_view name = graph.op(one.start).name;
    const bool is_uneven = one.kind == CollectiveKind::kAllToAll;
    call.what = plain_packet(name);
    call.replaces = replaced_calls(graph, one.start);
    if (call.what == "batch_p2p_ops" && add_batch(graph, one.start, call)) return;
    const Op& op = graph.op(one.start);
    for (size_t i = 0; op.schema.has_value() && i < op.schema->args.size(); ++i) {
      const Arg* arg = call_argument(graph, one.start, i);
      const std::string_view about = op.schema->args[i].name;
      if (arg == nullptr || about == "group_name" || about == "group_size" || about == "out") continue;
      if (is_uneven && (about == "output_split_sizes" || about == "input_split_sizes")) {
        (about == "input_split_sizes" ? call.given : call.taken) = numbers(graph, *arg);
      } else if (about == "dst" || about == "src") {
        read_peer(call, name, *arg);
        if (call.kind == RankCall::Kind::kCollective) call.what += " " + text(graph, *arg, false);
      } else if (about == "tag" && arg->is(ArgKind::kInt)) {
        call.tag = arg->as_int();
      } else {
        call.what += " " + text(graph, *arg, is_uneven);
      }
    }
    trace_.calls.push_back(std::move(call));
  }

  // Adds the sends and receives of a batch one by one. Returns false if the call's lists do not
  // show them.
  bool add_batch(const Graph& graph, NodeId node, const RankCall& like) {
    std::array<std::span<const Arg>, 4> lists;  // kinds, peers, tags, tensors
    for (size_t i = 0; i < lists.size(); ++i) {
      const CallArg list = CallArgs(graph, node)[i];
      lists[i] = list.items();
      if (!list.is_list() || lists[i].size() != lists[0].size()) return false;
    }
    ++num_batches_;
    std::vector<RankCall> calls;
    for (size_t i = 0; i < lists[0].size(); ++i) {
      if (!lists[0][i].is(ArgKind::kString) || !lists[1][i].is(ArgKind::kInt) || !lists[2][i].is(ArgKind::kInt)) {
        return false;
      }
      RankCall call = like;
      call.what = std::string(module_.text(lists[0][i].as_string()));
      if (call.what != "isend" && call.what != "irecv") return false;
      call.kind = call.what == "isend" ? RankCall::Kind::kSend : RankCall::Kind::kReceive;
      call.what += " " + text(graph, lists[3][i], false);
      call.peer = lists[1][i].as_int();
      call.tag = lists[2][i].as_int();
      call.batch = num_batches_;
      calls.push_back(std::move(call));
    }
    trace_.calls.insert(trace_.calls.end(), calls.begin(), calls.end());
    return true;
  }

  // Returns the packet without the suffix of an in-place or out variant. Ranks may call different
  // variants.
  static std::string plain_packet(std::string_view name) {
    std::string_view packet = packet_of(name);
    for (const std::string_view ending : {"_out", "_"}) {
      if (packet.ends_with(ending)) packet.remove_suffix(ending.size());
    }
    return std::string(packet);
  }

  static void read_peer(RankCall& call, std::string_view name, const Arg& arg) {
    const bool is_send = name.find(".isend") != std::string_view::npos;
    const bool is_receive = name.find(".irecv") != std::string_view::npos;
    if (!is_send && !is_receive) return;
    call.kind = is_send ? RankCall::Kind::kSend : RankCall::Kind::kReceive;
    if (arg.is(ArgKind::kInt)) call.peer = arg.as_int();
  }

  std::vector<int64_t> numbers(const Graph& graph, const Arg& arg) const {
    std::vector<int64_t> found;
    if (!arg.has_children()) return found;
    for (const Arg& child : graph.pool().children(arg)) {
      if (!child.is(ArgKind::kInt)) return {};
      found.push_back(child.as_int());
    }
    return found;
  }

  // Returns the argument as text, to compare it with the argument on another rank.
  std::string text(const Graph& graph, const Arg& arg, bool is_uneven) const {
    if (arg.is(ArgKind::kNode)) return text(graph, graph.value(arg.as_node()), is_uneven);
    if (arg.is(ArgKind::kInt)) return std::to_string(arg.as_int());
    if (arg.is(ArgKind::kString)) return std::string(module_.text(arg.as_string()));
    if (!arg.has_children()) return "?";
    std::string list = "[";
    for (const Arg& child : graph.pool().children(arg))
      list += (list.size() > 1 ? ", " : "") + text(graph, child, is_uneven);
    return list + "]";
  }
  // Returns the dtype and the number of elements, because NCCL gets only these. For uneven splits,
  // returns the number of elements of one row.
  std::string text(const Graph& graph, const Value& value, bool is_uneven) const {
    if (value.kind != ValueKind::kTensor) return "?";
    const Tensor& tensor = graph.pool().tensor(value);
    const std::vector<Dim>& dims = module_.dims(tensor.sizes);
    std::string symbols;
    int64_t count = 1;
    for (size_t i = is_uneven ? 1 : 0; i < dims.size(); ++i) {
      if (dims[i].is_static()) {
        if (__builtin_mul_overflow(count, dims[i].value, &count)) count = -1;
      } else {
        symbols += " * " + module_.exprs.to_string(dims[i].expr);
      }
    }
    return std::string(name_of(tensor.dtype)) + (is_uneven ? " rows of " : " x ") + std::to_string(count) + symbols;
  }

  const Module& module_;
  RankTrace trace_;
  std::map<RankGroup, uint32_t> places_;
  uint32_t num_batches_ = 0;
};

// A call that a rank issues.
struct Site {
  const RankTrace* trace;
  const RankCall* call;
};

class Comparer {
 public:
  explicit Comparer(const std::vector<RankTrace>& traces) : traces_(traces) {
    for (const RankTrace& trace : traces) by_rank_.emplace(trace.rank, &trace);
  }

  RankReport run() {
    check_discipline();
    check_groups();
    collect();
    for (const auto& [group, members] : calls_) compare(group, members);
    match_pairs();
    if (report_.conflicts.empty()) find_circle();
    return std::move(report_);
  }

 private:
  using Calls = std::vector<Site>;

  void conflict(RankConflict::Kind kind, const RankTrace& trace, const RankCall* call, std::string text) {
    report_.conflicts.push_back(
        {kind, std::move(text), trace.file, call == nullptr ? "" : call->graph, call == nullptr ? "" : call->node});
  }
  static std::string group_text(const RankGroup& group) {
    return "group " + quoted(group.uid) + " (ranks " + format_numbers(group.ranks) + ")";
  }
  static std::string site_text(const Site& site) {
    return "rank " + std::to_string(site.trace->rank) + " issues %" + site.call->node + " (" + site.call->what + ")";
  }

  void check_discipline() {
    for (const RankTrace& trace : traces_) {
      if (trace.undisciplined.empty()) continue;
      const size_t more = trace.undisciplined.size() - 1;
      conflict(RankConflict::Kind::kDiscipline, trace, nullptr,
               "rank " + std::to_string(trace.rank) + ": " + trace.undisciplined.front() +
                   (more > 0 ? ", and further faults: " + std::to_string(more) : ""));
    }
  }

  // Checks that each rank is a member of the groups on which it issues calls. Also checks that all
  // members with a file list the group with the same name and order of ranks.
  void check_groups() {
    std::map<std::pair<std::string, int64_t>, std::pair<const RankGroup*, const RankTrace*>>
        known;  // by name and member
    for (const RankTrace& trace : traces_) {
      for (const RankGroup& group : trace.groups) {
        if (std::ranges::find(group.ranks, trace.rank) == group.ranks.end()) {
          conflict(RankConflict::Kind::kGroups, trace, first_on(trace, group),
                   "rank " + std::to_string(trace.rank) + " issues calls on " + group_text(group) +
                       ", of which it is not a member");
          continue;
        }
        for (const int64_t rank : group.ranks) {
          const auto [found, is_new] = known.try_emplace({group.uid, rank}, std::pair(&group, &trace));
          if (is_new || *found->second.first == group) continue;
          conflict(RankConflict::Kind::kGroups, trace, first_on(trace, group),
                   "rank " + std::to_string(trace.rank) + " lists " + group_text(group) + ", but rank " +
                       std::to_string(found->second.second->rank) + " lists " + group_text(*found->second.first));
          break;
        }
      }
    }
  }
  static const RankCall* first_on(const RankTrace& trace, const RankGroup& group) {
    for (const RankCall& call : trace.calls) {
      if (trace.groups[call.group] == group) return &call;
    }
    return nullptr;
  }

  void collect() {
    for (const RankTrace& trace : traces_) {
      for (const RankGroup& group : trace.groups) calls_[group][trace.rank];
      std::vector<size_t> issued(trace.groups.size(), 0);
      for (const RankCall& call : trace.calls) {
        ++issued[call.group];
        if (call.kind == RankCall::Kind::kCollective)
          calls_[trace.groups[call.group]][trace.rank].push_back({&trace, &call});
      }
      for (size_t i = 0; i < issued.size(); ++i) {
        size_t& most = most_issued_[trace.groups[i]];
        most = std::max(most, issued[i]);
      }
    }
    // Adds the members that issue no calls on a group.
    for (auto& [group, members] : calls_) {
      for (const int64_t rank : group.ranks) {
        if (by_rank_.contains(rank)) members[rank];
      }
    }
  }

  // Compares all members of one group with the first member, call by call.
  void compare(const RankGroup& group, const std::map<int64_t, Calls>& members) {
    RankReport::Row row;
    row.group = group;
    for (const int64_t rank : group.ranks) {
      if (!members.contains(rank)) row.missing.push_back(rank);
    }
    size_t most = 0;
    for (const auto& [rank, calls] : members) most = std::max(most, calls.size());
    row.calls = most_issued_[group];
    report_.rows.push_back(row);
    for (size_t i = 0; i < most; ++i) {
      const Site* first = nullptr;
      const std::pair<const int64_t, Calls>* shorter = nullptr;
      for (const auto& member : members) {
        if (i >= member.second.size()) {
          shorter = &member;
          continue;
        }
        const Site& site = member.second[i];
        if (first == nullptr) {
          first = &site;
        } else if (site.call->what != first->call->what) {
          conflict(RankConflict::Kind::kCalls, *site.trace, site.call,
                   group_text(group) + ", call " + std::to_string(i + 1) + ": " + site_text(*first) + ", but " +
                       site_text(site));
          return;
        }
      }
      if (shorter != nullptr) {
        conflict(RankConflict::Kind::kLength, *first->trace, first->call,
                 group_text(group) + ", call " + std::to_string(i + 1) + ": " + site_text(*first) + ", but rank " +
                     std::to_string(shorter->first) + " issues only " + std::to_string(shorter->second.size()) +
                     " of these calls");
        return;
      }
      if (!check_parts(group, members, i)) return;
    }
    check_origins(group, members);
  }

  // Returns the original calls that each call replaces. Original calls are numbered from 1 among
  // all original calls of the group on this rank.
  static std::vector<std::vector<size_t>> origins_of(const Calls& calls) {
    std::vector<uint64_t> all;
    for (const Site& site : calls) all.insert(all.end(), site.call->replaces.begin(), site.call->replaces.end());
    std::ranges::sort(all);
    std::vector<std::vector<size_t>> found;
    for (const Site& site : calls) {
      found.emplace_back();
      for (const uint64_t uid : site.call->replaces) {
        found.back().push_back(1 + static_cast<size_t>(std::lower_bound(all.begin(), all.end(), uid) - all.begin()));
      }
    }
    return found;
  }

  // Reports equal calls that replace different original calls. These calls exchange data that do
  // not belong together, although the job does not hang.
  void check_origins(const RankGroup& group, const std::map<int64_t, Calls>& members) {
    const auto places = [](const std::vector<size_t>& found) {
      return format_numbers(std::vector<int64_t>(found.begin(), found.end()));
    };
    const Calls* first = nullptr;
    std::vector<std::vector<size_t>> known;
    for (const auto& [rank, calls] : members) {
      std::vector<std::vector<size_t>> own = origins_of(calls);
      if (first == nullptr) {
        first = &calls;
        known = std::move(own);
        continue;
      }
      for (size_t i = 0; i < own.size(); ++i) {
        if (own[i] == known[i]) continue;
        conflict(RankConflict::Kind::kOrigin, *calls[i].trace, calls[i].call,
                 group_text(group) + ", call " + std::to_string(i + 1) + ": " + site_text((*first)[i]) +
                     " for original call " + places(known[i]) + " of the group, but " + site_text(calls[i]) +
                     " for original call " + places(own[i]));
        return;
      }
    }
  }

  // Checks an all-to-all. Each rank must expect as many rows as each other rank sends to it.
  bool check_parts(const RankGroup& group, const std::map<int64_t, Calls>& members, size_t i) {
    for (const auto& [rank, calls] : members) {
      for (const auto& [other, others] : members) {
        const size_t to = place_in(group, other), from = place_in(group, rank);
        const std::vector<int64_t>& given = calls[i].call->given;
        const std::vector<int64_t>& taken = others[i].call->taken;
        if (to >= given.size() || from >= taken.size() || given[to] == taken[from]) continue;
        conflict(RankConflict::Kind::kCalls, *calls[i].trace, calls[i].call,
                 group_text(group) + ", call " + std::to_string(i + 1) + ": rank " + std::to_string(rank) + " sends " +
                     std::to_string(given[to]) + " rows to rank " + std::to_string(other) + " in %" +
                     calls[i].call->node + ", but rank " + std::to_string(other) + " expects " +
                     std::to_string(taken[from]) + " rows in %" + others[i].call->node);
        return false;
      }
    }
    return true;
  }
  static size_t place_in(const RankGroup& group, int64_t rank) {
    return static_cast<size_t>(std::ranges::find(group.ranks, rank) - group.ranks.begin());
  }

  using Lane = std::tuple<RankGroup, int64_t, int64_t, int64_t>;  // group, from, to, tag
  using Lanes = std::map<Lane, std::pair<Calls, Calls>>;          // sends and receives

  // Returns "; the other rank issues %irecv with tag 0, not 7" if the other rank has calls with
  // another tag that have no counterpart either.
  static std::string other_tag(const Lanes& lanes, const Lane& lane, bool is_send) {
    const auto& [group, from, to, tag] = lane;
    for (auto at = lanes.lower_bound({group, from, to, INT64_MIN}); at != lanes.end(); ++at) {
      const int64_t other = std::get<3>(at->first);
      if (at->first != Lane(group, from, to, other)) break;
      const auto& [sends, receives] = at->second;
      const Calls &waiting = is_send ? receives : sends, &matched = is_send ? sends : receives;
      if (other == tag || waiting.size() <= matched.size()) continue;
      return "; the other rank issues %" + waiting[matched.size()].call->node + " with tag " + std::to_string(other) +
             ", not " + std::to_string(tag);
    }
    return "";
  }

  // Matches sends with receives in order, for each group, pair of ranks and tag.
  void match_pairs() {
    Lanes lanes;
    for (const RankTrace& trace : traces_) {
      for (const RankCall& call : trace.calls) {
        if (call.kind == RankCall::Kind::kCollective || call.peer < 0) continue;
        const RankGroup& group = trace.groups[call.group];
        const bool is_send = call.kind == RankCall::Kind::kSend;
        const Lane lane = {group, is_send ? trace.rank : call.peer, is_send ? call.peer : trace.rank, call.tag};
        (is_send ? lanes[lane].first : lanes[lane].second).push_back({&trace, &call});
      }
    }
    for (const auto& [lane, ends] : lanes) {
      const auto& [sends, receives] = ends;
      const auto& [group, from, to, tag] = lane;
      if (!by_rank_.contains(from) || !by_rank_.contains(to)) continue;  // one of the two ranks has no file
      for (size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
        const bool is_alone = i >= sends.size() || i >= receives.size();
        if (!is_alone && data_of(sends[i]) == data_of(receives[i])) {
          pairs_.push_back({sends[i], receives[i]});
          continue;
        }
        const Site& site = i < sends.size() ? sends[i] : receives[i];
        const std::string about = group_text(group) + ", from rank " + std::to_string(from) + " to rank " +
                                  std::to_string(to) + ", message " + std::to_string(i + 1) + ": " + site_text(site);
        conflict(RankConflict::Kind::kPair, *site.trace, site.call,
                 about + (is_alone ? ", but the other rank issues no matching call" +
                                         other_tag(lanes, lane, i < sends.size())
                                   : ", but " + site_text(receives[i])));
        break;
      }
    }
  }
  static std::string_view data_of(const Site& site) {
    const std::string_view what = site.call->what;
    return what.substr(std::min(what.size(), what.find(' ')));
  }

  // Vertices are calls of groups and messages. An edge leads from a call of a rank to the rank's
  // next.
  void find_circle() {
    std::map<const RankCall*, uint32_t> vertex_of;
    uint32_t count = 0;
    for (const auto& [group, members] : calls_) {
      size_t most = 0;
      for (const auto& [rank, calls] : members) {
        for (size_t i = 0; i < calls.size(); ++i) vertex_of[calls[i].call] = count + static_cast<uint32_t>(i);
        most = std::max(most, calls.size());
      }
      count += static_cast<uint32_t>(most);
    }
    for (const auto& [send, receive] : pairs_) vertex_of[send.call] = vertex_of[receive.call] = count++;
    edges_.assign(count, {});
    std::vector<uint32_t> missing(count, 0);
    for (const RankTrace& trace : traces_) {
      std::vector<const RankCall*> before, last;  // a call, or a batch
      for (const RankCall& call : trace.calls) {
        if (!vertex_of.contains(&call)) continue;
        if (last.empty() || call.batch == 0 || last.back()->batch != call.batch) {
          before = std::move(last);
          last.clear();
        }
        for (const RankCall* other : before) {
          if (add_edge(vertex_of[other], vertex_of[&call], {&trace, other}, {&trace, &call}))
            ++missing[vertex_of[&call]];
        }
        last.push_back(&call);
      }
    }
    std::vector<uint32_t> ready, rest;
    for (uint32_t vertex = 0; vertex < count; ++vertex) {
      if (missing[vertex] == 0) ready.push_back(vertex);
    }
    while (!ready.empty()) {
      const uint32_t vertex = ready.back();
      ready.pop_back();
      for (const Edge& edge : edges_[vertex]) {
        if (--missing[edge.to] == 0) ready.push_back(edge.to);
      }
    }
    for (uint32_t vertex = 0; vertex < count; ++vertex) {
      if (missing[vertex] > 0) rest.push_back(vertex);
    }
    if (rest.empty()) return;
    std::vector<const Edge*> shortest;
    for (size_t i = 0; i < std::min<size_t>(rest.size(), 4096); ++i) {
      std::vector<const Edge*> circle = circle_from(rest[i], missing);
      if (!circle.empty() && (shortest.empty() || circle.size() < shortest.size())) shortest = std::move(circle);
      if (shortest.size() == 2) break;
    }
    if (!shortest.empty()) say_circle(shortest);
  }

  struct Edge {
    uint32_t to;
    Site before, after;
  };

  // Returns false if the edge exists already, or if it would lead from a vertex to itself.
  bool add_edge(uint32_t from, uint32_t to, const Site& before, const Site& after) {
    const bool is_known =
        std::any_of(edges_[from].begin(), edges_[from].end(), [to](const Edge& edge) { return edge.to == to; });
    if (is_known || from == to) return false;
    edges_[from].push_back({to, before, after});
    return true;
  }

  // Returns the shortest circle through the vertex. Uses only vertices that have no place in the
  // common order.
  std::vector<const Edge*> circle_from(uint32_t vertex, const std::vector<uint32_t>& missing) const {
    std::map<uint32_t, std::pair<uint32_t, const Edge*>> reached;
    std::deque<uint32_t> open = {vertex};
    while (!open.empty()) {
      const uint32_t at = open.front();
      open.pop_front();
      for (const Edge& edge : edges_[at]) {
        if (missing[edge.to] == 0 || reached.contains(edge.to)) continue;
        reached[edge.to] = {at, &edge};
        if (edge.to != vertex) {
          open.push_back(edge.to);
          continue;
        }
        std::vector<const Edge*> circle;
        for (uint32_t back = vertex; circle.empty() || back != vertex; back = reached[back].first) {
          circle.push_back(reached[back].second);
        }
        std::ranges::reverse(circle);
        return circle;
      }
    }
    return {};
  }

  void say_circle(const std::vector<const Edge*>& circle) {
    std::string text = "a circle of " + std::to_string(circle.size()) + " calls, each waiting for the next: ";
    for (size_t i = 0; i < circle.size(); ++i) {
      const Edge& edge = *circle[i];
      const RankTrace& trace = *edge.before.trace;
      text += (i == 0 ? "" : "; ") + std::string("rank ") + std::to_string(trace.rank) + " issues %" +
              edge.before.call->node + " on " + group_text(trace.groups[edge.before.call->group]) + " before %" +
              edge.after.call->node + " on " + group_text(trace.groups[edge.after.call->group]);
    }
    conflict(RankConflict::Kind::kCircle, *circle[0]->before.trace, circle[0]->before.call, text);
  }

  const std::vector<RankTrace>& traces_;
  std::map<int64_t, const RankTrace*> by_rank_;
  std::map<RankGroup, std::map<int64_t, Calls>> calls_;
  std::map<RankGroup, size_t> most_issued_;
  std::vector<std::pair<Site, Site>> pairs_;
  std::vector<std::vector<Edge>> edges_;
  RankReport report_;
};

}  // namespace

RankTrace trace_rank(const Module& module, int64_t rank, const std::string& file) {
  return Tracer(module, rank, file).run();
}

std::string name_of_calls(const RankTrace& trace) {
  if (trace.calls.empty()) return "";
  std::vector<uint64_t> all;
  for (const RankCall& call : trace.calls) all.insert(all.end(), call.replaces.begin(), call.replaces.end());
  std::ranges::sort(all);
  std::vector<uint64_t> words;
  for (const RankCall& call : trace.calls) {
    const bool is_message = call.kind != RankCall::Kind::kCollective;
    const Hash128 what = hash_text(is_message ? std::string_view("message") : std::string_view(call.what));
    words.insert(words.end(),
                 {call.group, trace.groups[call.group].ranks.size(), what.high, what.low, call.replaces.size()});
    const size_t begin = words.size();
    for (const uint64_t uid : call.replaces) {
      words.push_back(static_cast<uint64_t>(std::lower_bound(all.begin(), all.end(), uid) - all.begin()));
    }
    // Certificates of earlier versions contain hashes that do not depend on the order of the
    // members.
    std::sort(words.begin() + static_cast<std::ptrdiff_t>(begin), words.end());
  }
  const Hash128 name = hash_words(words);
  std::array<char, 33> digits = {};
  std::snprintf(digits.data(), digits.size(), "%016llx%016llx", static_cast<unsigned long long>(name.high),
                static_cast<unsigned long long>(name.low));
  return digits.data();
}

RankReport compare_ranks(const std::vector<RankTrace>& traces) { return Comparer(traces).run(); }

}  // namespace fxopt
