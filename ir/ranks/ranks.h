#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/ids.h"
#include "ir/graph/module.h"

// Whether the ranks of a job issue collectives that fit together. NCCL asks of every communicator that all its ranks issue the
// same calls in the same order, and of several communicators of one device that all devices issue them in one order (NCCL user
// guide, "Using multiple NCCL communicators concurrently"); a job that does not hangs, mostly without an error.

namespace fxopt {

// A collective, a send or a receive as one rank issues it.
struct RankCall {
  enum class Kind : uint8_t { kCollective, kSend, kReceive };
  Kind kind = Kind::kCollective;
  uint32_t group = 0;  // place in RankTrace::groups
  std::string graph, node;
  // What all ranks must say alike: operator, reduction, root, type and sizes of what it is given, but for parts of unlike sizes.
  std::string what;
  int64_t peer = -1, tag = 0;  // kSend, kReceive; of the peer the rank in the job
  uint32_t batch = 0;          // those of one number (batch_p2p_ops) begin together; 0: it stands alone
  // See calls_stood_for().
  std::vector<uint64_t> stands_for;
  std::vector<int64_t> given,
      taken;  // of an all-to-all of unlike parts: how many rows go to and come from each, where both are numbers
};

// A communicator, as its members know it: two of equal ranks are two.
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
  std::vector<std::string> undisciplined;  // starts that nobody waits for, and reads before a wait, in words
  size_t unknown = 0;                      // calls whose group the file does not list: they are not compared
  size_t hidden = 0;                       // calls in graphs that nodes run: not looked at
};

// What one rank issues, of the graphs of a step in the order of its invocations, else of the file. O(nodes + edges).
RankTrace trace_rank(const Module& module, int64_t rank, const std::string& file);

// Names what the rank issues, by 32 hexadecimal digits: its calls in order, each by what it says, how many ranks its group has
// and which of the groups it is by first use, and what it stands for, counted among all. The same for all ranks that run one
// program, for none of this hangs on the rank; of sends and receives only that there are. Empty where it issues nothing. O(calls
// log calls).
std::string name_of_calls(const RankTrace& trace);

// Where ranks do not fit together.
struct RankConflict {
  enum class Kind : uint8_t {
    kGroups,     // a member knows the group otherwise
    kCalls,      // one rank's call is another's that does not fit
    kLength,     // one issues more calls than another
    kPair,       // a send without its receive, or the other way round; of other sizes
    kOrigin,     // the same call, and it stands for other ones on another rank: buckets of other members, another order
    kCircle,     // calls of several groups wait for each other
    kDiscipline  // a result that is read before its wait, or never waited for
  };
  Kind kind;
  std::string text;  // names ranks, nodes and files
  std::string file, graph, node;
};

struct RankReport {
  struct Row {
    RankGroup group;
    size_t calls = 0;              // that each member issues, or the one with most; messages among them
    std::vector<int64_t> missing;  // members without a file
  };
  std::vector<Row> rows;                // by the group
  std::vector<RankConflict> conflicts;  // of each group the first; the shortest circle
};

// Compares traces of unlike ranks: of each group the calls of its members one by one, and which of the calls that a rank's file
// began with each stands for, counted in the order of their uids (so ranks need not number their nodes alike); sends with
// receives, in order for each pair and tag; then whether the calls of all groups, each rank's in the order in which it issues
// them, have an order at all. That they do is enough for any number of streams; without waits in the circle a job may get
// through with NCCL 2.26 or newer, which the text says. O(calls log calls), and for a circle a search from each call in it, of
// 4,096 at most.
RankReport compare_ranks(const std::vector<RankTrace>& traces);

}  // namespace fxopt
