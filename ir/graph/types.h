#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fxopt {

// The enumerations that graph files contain. A test checks that the numbers equal the numbers in
// schemas/fxgraph.proto. Files in the text form (.fxg) contain the names.

template <class E>
struct EnumName {
  E value;
  std::string_view name;
};

// The values and printed names of an enumeration, in order of value. Each enumeration below has a
// specialisation.
template <class E>
struct EnumNames;

// Returns the table of an enumeration whose values count up from 0. `names` are in order of value.
template <class E, size_t n>
constexpr std::array<EnumName<E>, n> number_names(const std::string_view (&names)[n]) {
  std::array<EnumName<E>, n> table{};
  for (size_t i = 0; i < n; ++i) table[i] = {static_cast<E>(i), names[i]};
  return table;
}

enum class SymbolKind : uint8_t {
  kUnspecified = 0,
  kBacked = 1,
  kUnbacked = 2,
  kRank = 3,
};
template <>
struct EnumNames<SymbolKind> {
  static constexpr auto kAll = number_names<SymbolKind>({"unspecified", "backed", "unbacked", "rank"});
};

enum class SymbolType : uint8_t {
  kInt = 0,
  kFloat = 1,
  kBool = 2,
};
template <>
struct EnumNames<SymbolType> {
  static constexpr auto kAll = number_names<SymbolType>({"int", "float", "bool"});
};

enum class DType : uint8_t {
  kUnspecified = 0,
  kUint8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kComplex32 = 9,
  kComplex64 = 10,
  kComplex128 = 11,
  kBool = 12,
  kBfloat16 = 13,
  kUint16 = 14,
  kUint32 = 15,
  kUint64 = 16,
  kFloat8E4m3fn = 17,
  kFloat8E5m2 = 18,
  kFloat8E4m3fnuz = 19,
  kFloat8E5m2fnuz = 20,
  kFloat8E8m0fnu = 21,
  kFloat4E2m1fnX2 = 22,
  kQint8 = 23,
  kQuint8 = 24,
  kQint32 = 25,
  kBits8 = 26,
  kBits16 = 27,
};
template <>
struct EnumNames<DType> {
  static constexpr auto kAll =
      number_names<DType>({"unspecified", "u8",         "i8",    "i16",      "i32",    "i64",        "f16",
                           "f32",         "f64",        "c32",   "c64",      "c128",   "b8",         "bf16",
                           "u16",         "u32",        "u64",   "f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz",
                           "f8e8m0fnu",   "f4e2m1fnx2", "qint8", "quint8",   "qint32", "bits8",      "bits16"});
};

enum class Layout : uint8_t {
  kStrided = 0,
  kSparseCoo = 1,
  kSparseCsr = 2,
  kSparseCsc = 3,
  kSparseBsr = 4,
  kSparseBsc = 5,
  kMkldnn = 6,
  kJagged = 7,
};
template <>
struct EnumNames<Layout> {
  static constexpr auto kAll = number_names<Layout>(
      {"strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "mkldnn", "jagged"});
};

enum class MemoryFormat : uint8_t {
  kContiguous = 0,
  kPreserve = 1,
  kChannelsLast = 2,
  kChannelsLast3d = 3,
};
template <>
struct EnumNames<MemoryFormat> {
  static constexpr auto kAll =
      number_names<MemoryFormat>({"contiguous", "preserve", "channels_last", "channels_last_3d"});
};

enum class PlacementKind : uint8_t {
  kReplicate = 0,
  kShard = 1,
  kPartial = 2,
  kStridedShard = 3,
};
template <>
struct EnumNames<PlacementKind> {
  static constexpr auto kAll = number_names<PlacementKind>({"replicate", "shard", "partial", "strided_shard"});
};

enum class NodeKind : uint8_t {
  kUnspecified = 0,
  kPlaceholder = 1,
  kGetAttr = 2,
  kCallFunction = 3,
  kOutput = 4,
  kCallMethod = 5,
  kCallModule = 6,
};
template <>
struct EnumNames<NodeKind> {
  static constexpr auto kAll = number_names<NodeKind>(
      {"unspecified", "placeholder", "get_attr", "call_function", "output", "call_method", "call_module"});
};

enum class Phase : uint8_t {
  kUnspecified = 0,
  kForward = 1,
  kLoss = 2,
  kBackward = 3,
  kOptimizer = 4,
};
template <>
struct EnumNames<Phase> {
  static constexpr auto kAll = number_names<Phase>({"unspecified", "forward", "loss", "backward", "optimizer"});
};

// The kind of annotation that gives a node its phase. kInferred means that fxopt inferred the
// phase.
enum class PhaseMarker : uint8_t {
  kUnspecified = 0,
  kAutogradBackward = 1,
  kIsForward = 2,
  kIsBackward = 3,
  kMustBeInForward = 4,
  kMustBeInBackward = 5,
  kCustomPhaseBackward = 6,
  kCustomPhaseForward = 7,
  kRematPassTag = 8,
  kApForward = 9,
  kApBackward = 10,
  kInferred = 11,
};
constexpr uint32_t marker_bit(PhaseMarker marker) { return uint32_t{1} << static_cast<uint32_t>(marker); }
template <>
struct EnumNames<PhaseMarker> {
  static constexpr auto kAll = number_names<PhaseMarker>(
      {"unspecified", "autograd_backward", "is_forward", "is_backward", "must_be_in_forward", "must_be_in_backward",
       "custom_phase_backward", "custom_phase_forward", "remat_pass_tag", "ap_forward", "ap_backward", "inferred"});
};

// A decision on a node's value: save it for backward, recompute it in backward, or offload it.
enum class Tag : uint8_t {
  kNone = 0,
  kMustSave = 1,
  kPreferSave = 2,
  kMustRecompute = 3,
  kPreferRecompute = 4,
  kMustOffload = 5,
  kPreferOffload = 6,
};
template <>
struct EnumNames<Tag> {
  static constexpr auto kAll = number_names<Tag>(
      {"NONE", "MUST_SAVE", "PREFER_SAVE", "MUST_RECOMPUTE", "PREFER_RECOMPUTE", "MUST_OFFLOAD", "PREFER_OFFLOAD"});
};

// Whether the passes followed a node's Tag.
enum class Verdict : uint8_t {
  kNone = 0,
  kHonoured = 1,
  kImplied = 2,
  kMoot = 3,
  kOverridden = 4,
  kDropped = 5,
  kConflicting = 6,
};
template <>
struct EnumNames<Verdict> {
  static constexpr auto kAll =
      number_names<Verdict>({"none", "honoured", "implied", "moot", "overridden", "dropped", "conflicting"});
};

// The outcome of the proof that a pass preserves the results of the module.
enum class ProofVerdict : uint8_t {
  kNone = 0,
  kProved = 1,
  kUnproved = 2,
};
template <>
struct EnumNames<ProofVerdict> {
  static constexpr auto kAll = number_names<ProofVerdict>({"none", "proved", "unproved"});
};

// The rule that decided a Verdict. ir/step/tag_rules.h describes the rules, in the order in which
// they are tried.
enum class TagRule : uint8_t {
  kNone = 0,
  kBackwardTag = 1,
  kSymbol = 2,
  kUnrepeatable = 3,
  kRandomSlot = 4,
  kWritten = 5,
  kRegionBoundary = 6,
  kMustRecompute = 7,
  kPreference = 8,
  kReplay = 9,
  kMustSave = 10,
  kInherited = 11,
  kMerged = 12,
  kCollective = 13,
  kOffload = 14,
  kReturned = 15,
  kKeptAnyway = 16,
  kExcluded = 17,
  kCut = 18,
  kShape = 19,
};
template <>
struct EnumNames<TagRule> {
  static constexpr auto kAll = number_names<TagRule>(
      {"none",           "backward_tag", "symbol",      "unrepeatable", "random_slot", "written", "region_boundary",
       "must_recompute", "preference",   "replay",      "must_save",    "inherited",   "merged",  "collective",
       "offload",        "returned",     "kept_anyway", "excluded",     "cut",         "shape"});
};

enum class OriginKind : uint8_t {
  kUnspecified = 0,
  kRecomputed = 1,
  kMerged = 2,
  kReplaced = 3,
  kImported = 4,
};
template <>
struct EnumNames<OriginKind> {
  static constexpr auto kAll =
      number_names<OriginKind>({"unspecified", "recomputed", "merged", "replaced", "imported"});
};

enum class ControlKind : uint8_t {
  kOrder = 0,
  kDataReady = 1,
  kKeepAlive = 2,
};
template <>
struct EnumNames<ControlKind> {
  static constexpr auto kAll = number_names<ControlKind>({"order", "data_ready", "keep_alive"});
};

enum class Capture : uint8_t {
  kUnspecified = 0,
  kAllowed = 1,
  kForbidden = 2,
  kBreakBefore = 3,
};
template <>
struct EnumNames<Capture> {
  static constexpr auto kAll = number_names<Capture>({"unspecified", "allowed", "forbidden", "break_before"});
};

enum class GraphKind : uint8_t {
  kUnspecified = 0,
  kForwardLossBackward = 1,
  kJoint = 2,
  kForward = 3,
  kBackward = 4,
  kInference = 5,
  kSubgraph = 6,
  kOptimizer = 7,
};
template <>
struct EnumNames<GraphKind> {
  static constexpr auto kAll = number_names<GraphKind>(
      {"unspecified", "forward_loss_backward", "joint", "forward", "backward", "inference", "subgraph", "optimizer"});
};

enum class InputRole : uint8_t {
  kUnspecified = 0,
  kParameter = 1,
  kBuffer = 2,
  kInput = 3,
  kTangent = 4,
  kSavedValue = 5,
  kRngState = 6,
  kOptimizerState = 7,
  kSeed = 8,
  kRngOffset = 9,
  kToken = 10,
  kConstant = 11,
  kSymbol = 12,
  kBackwardState = 13,
};
template <>
struct EnumNames<InputRole> {
  static constexpr auto kAll = number_names<InputRole>({"unspecified", "parameter", "buffer", "input", "tangent",
                                                        "saved_value", "rng_state", "optimizer_state", "seed",
                                                        "rng_offset", "token", "constant", "symbol", "backward_state"});
};

enum class OutputRole : uint8_t {
  kUnspecified = 0,
  kUser = 1,
  kLoss = 2,
  kGradient = 3,
  kMutation = 4,
  kSavedValue = 5,
  kRngState = 6,
  kToken = 7,
  kIntermediateBase = 8,
  kRngOffset = 9,
};
template <>
struct EnumNames<OutputRole> {
  static constexpr auto kAll =
      number_names<OutputRole>({"unspecified", "user", "loss", "gradient", "mutation", "saved_value", "rng_state",
                                "token", "intermediate_base", "rng_offset"});
};

enum class RngState : uint8_t {
  kImplicit = 0,
  kKnown = 1,
};
template <>
struct EnumNames<RngState> {
  static constexpr auto kAll = number_names<RngState>({"implicit", "known"});
};

// Returns the printed name of `value`. Returns an empty text for a number that this build does not
// know.
template <class E>
constexpr std::string_view name_of(E value) {
  for (const EnumName<E>& entry : EnumNames<E>::kAll) {
    if (entry.value == value) return entry.name;
  }
  return {};
}

// The inverse of name_of(). Returns nullopt for an unknown name.
template <class E>
constexpr std::optional<E> parse_enum(std::string_view name) {
  for (const EnumName<E>& entry : EnumNames<E>::kAll) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

// Returns the bytes of one element, or 0 for kUnspecified. For the packed type float4_e2m1fn_x2, an
// element is the byte that holds the pair.
constexpr int64_t element_size(DType dtype) {
  switch (dtype) {
    case DType::kUnspecified:
      return 0;
    case DType::kInt16:
    case DType::kUint16:
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kBits16:
      return 2;
    case DType::kInt32:
    case DType::kUint32:
    case DType::kFloat32:
    case DType::kComplex32:
    case DType::kQint32:
      return 4;
    case DType::kInt64:
    case DType::kUint64:
    case DType::kFloat64:
    case DType::kComplex64:
      return 8;
    case DType::kComplex128:
      return 16;
    default:
      return 1;
  }
}

}  // namespace fxopt
