#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fxopt {

// The stable exit codes of fxopt. `fxopt help exit-codes` documents each code.
enum class ExitCode : int {
  kDone = 0,
  kBug = 1,
  kUsage = 2,
  kInputRejected = 3,
  kNotEquivalent = 4,
  kGateFailed = 5,
  kRanksDiverge = 6,
  kInfeasible = 7,
  kUnsupported = 8,
  kDevice = 9,
  kFile = 10,
};

// Stable error codes, printed as FX and four digits. The first two digits are the code's family,
// which determines the exit code.
enum class ErrorCode : uint16_t {
  kInternal = 101,

  kUsage = 201,
  kUnknownPass = 202,
  kUnknownOption = 203,
  kBadOptionValue = 204,
  kBadPipeline = 205,
  kPassOrder = 206,
  kUnknownFormat = 207,
  kUnknownTopic = 208,
  kUnknownNode = 209,
  kAllocatorSyntax = 210,  // PYTORCH_ALLOC_CONF
  kAllocatorKey = 211,
  kAllocatorValue = 212,
  kUnknownDevice = 213,  // --device

  kNotAFile = 301,      // the magic is missing, so this is not an fxopt file
  kVersion = 302,       // a schema version that this build does not read
  kHashMismatch = 303,  // the bytes were damaged
  kMalformed = 304,     // protobuf or JSON that does not parse
  kTruncated = 305,
  kSyntax = 306,        // a syntax error in the text form
  kBadReference = 307,  // an index or name without a definition
  kDuplicateName = 308,
  kLimit = 309,  // a count, depth or size exceeds the reader's limit
  kBadExpression = 310,
  kBadValue = 311,  // a field with an illegal value
  kCountMismatch = 312,
  kBadCompression = 313,
  kBadProfile = 314,   // a device profile
  kBadBaseline = 315,  // --baseline
  kBadStep = 316,      // files or graphs that do not form one step
  kBadMeasurement = 317,
  kBadInput = 318,  // fxopt run: a tensor that does not match the step's input

  kVerifyStructure = 401,  // 401 to 407: groups of the verifier's rules, see ir/check/verify.h
  kVerifyOrder = 402,
  kVerifyValue = 403,
  kVerifyAlias = 404,
  kVerifyCollective = 405,
  kVerifyPhase = 406,
  kVerifyReference = 407,
  kTagConflict = 410,      // --strict-tags
  kTagUnrepeatable = 411,  // a node is tagged for recompute, but its second run may differ
  kPhaseConflict = 412,    // a node that is marked as forward depends on a tangent
  kWarning = 413,          // --werror
  kNotEquivalent = 420,    // the output graph differs from the input graph in its results
  kNotProved = 421,        // the proof needs a fact that is missing
  kOutputsDiffer = 430,    // fxopt run --expect

  kBudgetExceeded = 501,
  kGrowthExceeded = 502,  // --max-growth, --max-ratio

  kRanksDiverge = 601,  // fxopt ranks

  kUnknownSize = 801,
  kUnsupportedOp = 802,
  kUnsupportedGraph = 803,

  kOutOfMemory = 901,
  kRunFailed = 902,  // a step failed while it ran
  kDeviceFailed = 903,

  kFileOpen = 1001,
  kFileRead = 1002,
  kFileWrite = 1003,
  kFileTooLarge = 1004,
};

// The place of an error or a diagnostic. Every member may be empty. `line` and `column` count from
// 1, and 0 means that the number is unknown.
struct Where {
  std::string file;
  uint64_t line = 0;
  uint64_t column = 0;
  uint64_t byte = 0;  // offset in the file, for the binary form
  bool has_byte = false;
  std::string graph;
  std::string node;
  std::string field;  // path of the field inside the node: "args[1].list[0]"
  std::string module_path;
  std::string source;   // "model.py:123" as the tracer recorded it
  std::string excerpt;  // the faulty line of a text, with a caret line under it
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // the fault and its reason, in lower case and without a full stop
  std::string hint;     // the remedy; may be empty
  Where where;
};

// Returns an error at the byte `byte` of a file.
Error byte_error(ErrorCode code, std::string message, std::string hint, uint64_t byte);

struct ErrorInfo {
  ErrorCode code;
  ExitCode exit;
  std::string_view title;
  std::string explanation;  // printed by `fxopt help FX0306`
};

// Returns all codes of core/errors.md, sorted by number. `fxopt help` prints this table, and the
// tests check it.
const std::vector<ErrorInfo>& error_table();

// Returns the entry of error_table() for `code`. Every enumerator has an entry.
const ErrorInfo& error_info(ErrorCode code);

// Returns the code as text, such as "FX0306".
std::string code_name(ErrorCode code);

// Finds the entry of error_table() for a name such as "FX0306", "fx306" or "306". Returns nullptr
// if the code does not exist.
const ErrorInfo* find_error_info(std::string_view name);

// Formats an error for people, without a final line feed. The first line is "file:line:col:
// error[FX0306]: message". An indented line follows for each part that is present: graph; node with
// field; module path; source; excerpt; "hint: ...". Control characters are escaped, because much of
// this text comes from files.
std::string format_error(const Error& error);

// Returns the candidate closest to `name` by edit distance. An edit is an insertion, a deletion, a
// replacement, or a swap of neighbours. Upper and lower case are equal. A candidate is close enough
// if its distance from `name` is at most a quarter of the length of the longer text, rounded up. In
// a tie, the earlier candidate wins.
//
// If no candidate is close enough, returns the first candidate that begins with `name`. If no
// candidate begins with `name`, returns the longest candidate that is a prefix of `name`. In both
// cases, the shorter of the two texts must have at least three characters.
//
// Returns an empty view if nothing matches, or if `name` has fewer than 2 or more than 256
// characters. O(candidates * length^2).
std::string_view closest_name(std::string_view name, const std::vector<std::string_view>& candidates);
// Returns "did you mean 'x'?" if closest_name() finds a candidate x. Otherwise returns `otherwise`.
// Does not escape names that come from a file, because format_error() escapes its text.
std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates,
                       std::string_view otherwise = "");

}  // namespace fxopt
