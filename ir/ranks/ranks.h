#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/ids.h"
#include "ir/graph/module.h"

// Checks that the ranks of a job issue collectives that fit together. NCCL requires all ranks of a
// communicator to issue the same calls in the same order. For several communicators on one device,
// it requires all devices to issue their calls in one order (NCCL user guide, "Using multiple NCCL
// communicators concurrently"). A job that violates this hangs, mostly without an error.

namespace fxopt {

// A collective, a send or a receive as one rank issues it.
struct RankCall {
  enum class Kind : uint8_t { kCollective, kSend, kReceive };
  Kind kind = Kind::kCollective;
  uint32_t group = 0;  // place in RankTrace::groups
  std::string graph, node;
  // The part that must be equal on all ranks: operator, reduction, root, and the type and number of
  // elements of the inputs. For an all-to-all, whose splits may be uneven, the elements of one row.
  std::string what;
  int64_t peer = -1, tag = 0;  // kSend, kReceive; the peer is a rank of the job
  uint32_t batch = 0;          // calls of one number (batch_p2p_ops) begin together; 0: no batch
  // See replaced_calls().
  std::vector<uint64_t> replaces;
  std::vector<int64_t> given,
      taken;  // an all-to-all of uneven splits: rows sent to and received from each rank, if both are numbers
};

// A communicator, as its members know it: two with equal ranks are different.
struct RankGroup {
  std::string uid;
  std::vector<int64_t> ranks;
  auto operator<=>(const RankGroup&) const = default;
};

struct RankTrace {
  int64_t rank = 0;
  std::string file;
  std::vector<RankGroup> groups;
  std::vector<RankCall> calls;             // in the order in which the step's runs issue them
  std::vector<std::string> undisciplined;  // in words: starts without a wait, reads before a wait
  size_t unknown = 0;                      // calls on groups the file does not list: not compared
  size_t hidden = 0;                       // calls in graphs that nodes run: not examined
};

// The calls that one rank issues, from the graphs of a step in the order of its invocations, else
// in that of the file. O(nodes + edges).
RankTrace trace_rank(const Module& module, int64_t rank, const std::string& file);

// A name of 32 hexadecimal digits for the calls that the rank issues, in order. Each call
// contributes RankCall::what, the number of ranks of its group, the group's number by first use,
// and the calls it stands for, counted among all. No part depends on the rank, so all ranks that
// run one program have the same name. Sends and receives contribute only their presence. Empty if
// the rank issues nothing. O(calls log calls).
std::string name_of_calls(const RankTrace& trace);

// A disagreement between ranks.
struct RankConflict {
  enum class Kind : uint8_t {
    kGroups,     // a member knows the group with other ranks or another order
    kCalls,      // the ranks' calls at one place do not fit
    kLength,     // one rank issues more calls than another
    kPair,       // a send or receive without a match, or a pair of different sizes
    kOrigin,     // equal calls that stand for different ones: other bucket members, another order
    kCircle,     // calls of several groups wait for each other
    kDiscipline  // a result that is read before its wait, or has no wait
  };
  Kind kind;
  std::string text;  // names ranks, nodes and files
  std::string file, graph, node;
};

struct RankReport {
  struct Row {
    RankGroup group;
    size_t calls = 0;              // those of the member with most calls, including messages
    std::vector<int64_t> missing;  // members without a file
  };
  std::vector<Row> rows;                // by the group
  std::vector<RankConflict> conflicts;  // the first for each group; the shortest circle
};

// Compares traces of different ranks.
// - The calls of each group's members are compared one by one. So are the original calls that each
//   stands for, counted in the order of their uids, since ranks may number their nodes differently.
// - Sends are matched with receives, in order for each pair and tag.
// - The calls of all groups must have a common order that keeps each rank's order of issue. This is
//   enough for any number of streams. A job with a circle without waits may complete with NCCL 2.26
//   or newer, but is reported.
// O(calls log calls), and for a circle a search from each call in it, from at most 4,096.
RankReport compare_ranks(const std::vector<RankTrace>& traces);

}  // namespace fxopt
