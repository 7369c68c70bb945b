#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/ids.h"
#include "ir/graph/module.h"

// Checks that the ranks of a job issue collectives that match each other. NCCL requires all ranks
// of a communicator to issue the same calls in the same order. If one device uses several
// communicators, NCCL requires all devices to issue their calls in one order (NCCL user guide,
// "Using multiple NCCL communicators concurrently"). A job that violates these rules hangs, usually
// without an error.

namespace fxopt {

// A collective, send or receive that one rank issues.
struct RankCall {
  enum class Kind : uint8_t { kCollective, kSend, kReceive };
  Kind kind = Kind::kCollective;
  uint32_t group = 0;  // index in RankTrace::groups
  std::string graph, node;
  // The properties that must be equal on all ranks: operator, reduction, root, and the type and
  // number of elements of the inputs. The splits of an all-to-all may be uneven, so for an
  // all-to-all only the elements of one row are counted.
  std::string what;
  int64_t peer = -1, tag = 0;  // for kSend and kReceive; the peer is a rank of the job
  // The number of the call's batch (batch_p2p_ops), or 0 if the call is in no batch. Calls of one
  // batch start together.
  uint32_t batch = 0;
  // The original calls that this call replaces, see replaced_calls().
  std::vector<uint64_t> replaces;
  // For an all-to-all with uneven splits: the number of rows sent to each rank, and received from
  // each rank. A list is empty if the graph does not record all of these numbers.
  std::vector<int64_t> given, taken;
};

// A process group (communicator), as the file of one rank lists it. Two groups with equal ranks but
// different uids are different groups.
struct RankGroup {
  std::string uid;
  std::vector<int64_t> ranks;
  auto operator<=>(const RankGroup&) const = default;
};

struct RankTrace {
  int64_t rank = 0;
  std::string file;
  std::vector<RankGroup> groups;
  // Calls in the order in which the graphs of the training step issue them.
  std::vector<RankCall> calls;
  // Descriptions of collectives that no wait completes, and of reads before a wait.
  std::vector<std::string> undisciplined;
  // Number of calls on groups that the file does not list. These calls are not compared.
  size_t unknown = 0;
  // Number of collectives that are missing in `calls`, because the training step does not run their
  // graphs directly. An example is a subgraph that a higher-order op runs. These collectives are
  // not examined.
  size_t hidden = 0;
};

// Returns the calls that one rank issues. The graphs are read in the order in which the training
// step runs them. If the file does not record this order, the top-level graphs are read in the
// order of the file. O(nodes + edges).
RankTrace trace_rank(const Module& module, int64_t rank, const std::string& file);

// Returns a hash of the calls that the rank issues, in order, as 32 hexadecimal digits. Each call
// contributes:
// - RankCall::what, or the word "message" for a send or receive
// - the number of ranks of the call's group
// - the number of the call's group, where groups are numbered by first use
// - the original calls that the call replaces, each as its index among all original calls of the
//   rank; the order of these calls does not matter
//
// None of these values depends on the rank. All ranks that run one program therefore have the same
// hash. The result is empty if the rank issues nothing. O(calls log calls).
std::string name_of_calls(const RankTrace& trace);

// A disagreement between ranks.
struct RankConflict {
  enum class Kind : uint8_t {
    // One of these faults:
    // - Two ranks issue calls on groups with the same uid and a common member, but the ranks of the
    //   two groups or their order differ.
    // - A rank issues calls on a group that does not contain the rank.
    kGroups,
    kCalls,   // the n-th collectives of two ranks on one group do not match
    kLength,  // one rank issues more collectives on a group than another rank
    kPair,    // a send or receive has no counterpart, or the two sizes differ
    // The n-th collectives of two ranks on one group have equal RankCall::what, but replace
    // different original calls (see compare_ranks()). Examples:
    // - The calls are buckets with different members, or with another order of members.
    // - Two equal calls have swapped places on one of the ranks.
    kOrigin,
    kCircle,     // calls of several groups wait for each other in a circle
    kDiscipline  // a result is read before its wait, or has no wait
  };
  Kind kind;
  std::string text;  // a message that contains the ranks and nodes
  std::string file, graph, node;
};

struct RankReport {
  struct Row {
    RankGroup group;
    // Number of calls of the member that issues most calls. Sends and receives are included.
    size_t calls = 0;
    std::vector<int64_t> missing;  // members for which no file was given
  };
  std::vector<Row> rows;  // sorted by group
  // See compare_ranks().
  std::vector<RankConflict> conflicts;
};

// Compares the traces of different ranks.
//
// - The collectives of each group's members are compared one by one. The original calls of each
//   collective are compared as well. An original call is a call of the original graph that the
//   collective replaces, such as a member of a bucket. If no pass created the collective, the
//   collective itself is an original call. The uids of one call may differ between ranks. For each
//   rank and group, the original calls are therefore sorted by uid and numbered 1, 2, 3 and so on.
//   The numbers are compared, including the order of the members in a bucket.
// - Sends are matched with receives in order, for each group, pair of ranks and tag.
// - The calls of all groups must have a common order that preserves each rank's order of issue. If
//   this order exists, the compared calls cannot wait for each other in a circle, for any number of
//   streams. With NCCL 2.26 or newer, a job whose calls form a circle may complete if the circle
//   contains no wait, but fxopt reports the circle anyway.
//
// The comparison of a group stops at the first conflict. The matching of sends and receives stops
// at the first conflict of each group, pair of ranks and tag. The search for a circle runs only if
// no other conflict was found. The shortest circle is reported.
//
// O(calls log calls). If no common order exists, the calls that could not be ordered are the
// starting points of searches for a circle. At most 4,096 of these calls are used as starting
// points.
RankReport compare_ranks(const std::vector<RankTrace>& traces);

}  // namespace fxopt
