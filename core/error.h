#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fxopt {

// The exit codes of fxopt: part of its contract, documented by `fxopt help exit-codes`.
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

// Stable error codes, printed as FX and four digits. The first two digits are the family, which
// fixes the exit code.
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

  kNotAFile = 301,      // magic missing: not an fxopt file
  kVersion = 302,       // schema version this build does not read
  kHashMismatch = 303,  // bytes were damaged
  kMalformed = 304,     // protobuf or JSON that does not parse
  kTruncated = 305,
  kSyntax = 306,        // text form
  kBadReference = 307,  // an index or name without a definition
  kDuplicateName = 308,
  kLimit = 309,  // a count, depth or size above the reader's limit
  kBadExpression = 310,
  kBadValue = 311,  // a field with an illegal value
  kCountMismatch = 312,
  kBadCompression = 313,
  kBadProfile = 314,   // a device profile
  kBadBaseline = 315,  // --baseline
  kBadStep = 316,      // files or graphs that do not make one step
  kBadMeasurement = 317,
  kBadInput = 318,  // fxopt run: a tensor that does not match the step's input

  kVerifyStructure = 401,  // the verifier's groups, see ir/check/verify.h
  kVerifyOrder = 402,
  kVerifyValue = 403,
  kVerifyAlias = 404,
  kVerifyCollective = 405,
  kVerifyPhase = 406,
  kVerifyReference = 407,
  kTagConflict = 410,      // --strict-tags
  kTagUnrepeatable = 411,  // rule 3 of the tag list
  kPhaseConflict = 412,    // a forward-marked node depends on a tangent
  kWarning = 413,          // --werror
  kNotEquivalent = 420,    // the graph computes something else than the input graph
  kNotProved = 421,        // a fact is missing that would decide
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

// The place of an error or a diagnostic. Every part may be empty. Line and column count from 1; 0:
// unknown.
struct Where {
  std::string file;
  uint64_t line = 0;
  uint64_t column = 0;
  uint64_t byte = 0;  // offset in the file, for binary forms
  bool has_byte = false;
  std::string graph;
  std::string node;
  std::string field;  // path of the field inside the node: "args[1].list[0]"
  std::string module_path;
  std::string source;   // "model.py:123" as the tracer recorded it
  std::string excerpt;  // the offending line of a text, with a caret line under it
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // the fault and its reason: lower case, no full stop
  std::string hint;     // the remedy; may be empty
  Where where;
};

struct ErrorInfo {
  ErrorCode code;
  ExitCode exit;
  std::string_view title;
  std::string explanation;  // printed by `fxopt help FX0306`
};

// All codes, sorted by number, from core/errors.md: the table that `fxopt help` prints and the
// tests walk.
const std::vector<ErrorInfo>& error_table();

// Returns the row of `code`. Every enumerator has one.
const ErrorInfo& error_info(ErrorCode code);

// Returns "FX0306".
std::string code_name(ErrorCode code);

// Returns the code written as "FX0306", "fx306" or "306", or nullptr if it does not exist.
const ErrorInfo* find_error_info(std::string_view name);

// Formats an error for people, without a final line feed: "file:line:col: error[FX0306]: message".
// Then, each on an indented line if present: graph, node and field, module path, source, the
// excerpt, and "hint: ...". Control characters are escaped, because much of this text comes from
// files.
std::string format_error(const Error& error);

// Returns the candidate closest to `name` by edit distance (insertions, deletions, replacements,
// swaps of neighbours; case is ignored), if it is close enough to be a slip: at most a quarter of
// the longer length, rounded up. Otherwise returns the first candidate that begins with `name`, if
// `name` has three characters or more. Returns an empty view if neither exists, and for names of
// one character or of more than 256. The earlier candidate wins a tie. O(candidates * length^2).
std::string_view closest_name(std::string_view name, const std::vector<std::string_view>& candidates);
// Returns "did you mean 'x'?" for closest_name(), or `otherwise` if it is empty. Names may come
// from a file: the text is escaped when it is printed.
std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates,
                       std::string_view otherwise = "");

}  // namespace fxopt
