#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fxopt {

// The enumerations of the exchange format. The numbers are those of schemas/fxgraph.proto, which a
// test checks. The names are those of the text form.

template <class E>
struct EnumName {
  E value;
  std::string_view name;
};

// The values and printed names of an enumeration, in order of value. Each enumeration below has a
// specialisation.
template <class E>
struct EnumNames;

enum class SymbolKind : uint8_t {
  kUnspecified = 0,
  kBacked = 1,
  kUnbacked = 2,
  kRank = 3,
};
template <>
struct EnumNames<SymbolKind> {
  static constexpr EnumName<SymbolKind> kAll[] = {
      {SymbolKind::kUnspecified, "unspecified"},
      {SymbolKind::kBacked, "backed"},
      {SymbolKind::kUnbacked, "unbacked"},
      {SymbolKind::kRank, "rank"},
  };
};

enum class SymbolType : uint8_t {
  kInt = 0,
  kFloat = 1,
  kBool = 2,
};
template <>
struct EnumNames<SymbolType> {
  static constexpr EnumName<SymbolType> kAll[] = {
      {SymbolType::kInt, "int"},
      {SymbolType::kFloat, "float"},
      {SymbolType::kBool, "bool"},
  };
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
  static constexpr EnumName<DType> kAll[] = {
      {DType::kUnspecified, "unspecified"},
      {DType::kUint8, "u8"},
      {DType::kInt8, "i8"},
      {DType::kInt16, "i16"},
      {DType::kInt32, "i32"},
      {DType::kInt64, "i64"},
      {DType::kFloat16, "f16"},
      {DType::kFloat32, "f32"},
      {DType::kFloat64, "f64"},
      {DType::kComplex32, "c32"},
      {DType::kComplex64, "c64"},
      {DType::kComplex128, "c128"},
      {DType::kBool, "b8"},
      {DType::kBfloat16, "bf16"},
      {DType::kUint16, "u16"},
      {DType::kUint32, "u32"},
      {DType::kUint64, "u64"},
      {DType::kFloat8E4m3fn, "f8e4m3fn"},
      {DType::kFloat8E5m2, "f8e5m2"},
      {DType::kFloat8E4m3fnuz, "f8e4m3fnuz"},
      {DType::kFloat8E5m2fnuz, "f8e5m2fnuz"},
      {DType::kFloat8E8m0fnu, "f8e8m0fnu"},
      {DType::kFloat4E2m1fnX2, "f4e2m1fnx2"},
      {DType::kQint8, "qint8"},
      {DType::kQuint8, "quint8"},
      {DType::kQint32, "qint32"},
      {DType::kBits8, "bits8"},
      {DType::kBits16, "bits16"},
  };
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
  static constexpr EnumName<Layout> kAll[] = {
      {Layout::kStrided, "strided"},      {Layout::kSparseCoo, "sparse_coo"}, {Layout::kSparseCsr, "sparse_csr"},
      {Layout::kSparseCsc, "sparse_csc"}, {Layout::kSparseBsr, "sparse_bsr"}, {Layout::kSparseBsc, "sparse_bsc"},
      {Layout::kMkldnn, "mkldnn"},        {Layout::kJagged, "jagged"},
  };
};

enum class MemoryFormat : uint8_t {
  kContiguous = 0,
  kPreserve = 1,
  kChannelsLast = 2,
  kChannelsLast3d = 3,
};
template <>
struct EnumNames<MemoryFormat> {
  static constexpr EnumName<MemoryFormat> kAll[] = {
      {MemoryFormat::kContiguous, "contiguous"},
      {MemoryFormat::kPreserve, "preserve"},
      {MemoryFormat::kChannelsLast, "channels_last"},
      {MemoryFormat::kChannelsLast3d, "channels_last_3d"},
  };
};

enum class PlacementKind : uint8_t {
  kReplicate = 0,
  kShard = 1,
  kPartial = 2,
  kStridedShard = 3,
};
template <>
struct EnumNames<PlacementKind> {
  static constexpr EnumName<PlacementKind> kAll[] = {
      {PlacementKind::kReplicate, "replicate"},
      {PlacementKind::kShard, "shard"},
      {PlacementKind::kPartial, "partial"},
      {PlacementKind::kStridedShard, "strided_shard"},
  };
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
  static constexpr EnumName<NodeKind> kAll[] = {
      {NodeKind::kUnspecified, "unspecified"}, {NodeKind::kPlaceholder, "placeholder"},
      {NodeKind::kGetAttr, "get_attr"},        {NodeKind::kCallFunction, "call_function"},
      {NodeKind::kOutput, "output"},           {NodeKind::kCallMethod, "call_method"},
      {NodeKind::kCallModule, "call_module"},
  };
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
  static constexpr EnumName<Phase> kAll[] = {
      {Phase::kUnspecified, "unspecified"}, {Phase::kForward, "forward"},     {Phase::kLoss, "loss"},
      {Phase::kBackward, "backward"},       {Phase::kOptimizer, "optimizer"},
  };
};

// The form in which the tracer recorded the phase.
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
  static constexpr EnumName<PhaseMarker> kAll[] = {
      {PhaseMarker::kUnspecified, "unspecified"},
      {PhaseMarker::kAutogradBackward, "autograd_backward"},
      {PhaseMarker::kIsForward, "is_forward"},
      {PhaseMarker::kIsBackward, "is_backward"},
      {PhaseMarker::kMustBeInForward, "must_be_in_forward"},
      {PhaseMarker::kMustBeInBackward, "must_be_in_backward"},
      {PhaseMarker::kCustomPhaseBackward, "custom_phase_backward"},
      {PhaseMarker::kCustomPhaseForward, "custom_phase_forward"},
      {PhaseMarker::kRematPassTag, "remat_pass_tag"},
      {PhaseMarker::kApForward, "ap_forward"},
      {PhaseMarker::kApBackward, "ap_backward"},
      {PhaseMarker::kInferred, "inferred"},
  };
};

// A save/recompute decision on a node.
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
  static constexpr EnumName<Tag> kAll[] = {
      {Tag::kNone, "NONE"},
      {Tag::kMustSave, "MUST_SAVE"},
      {Tag::kPreferSave, "PREFER_SAVE"},
      {Tag::kMustRecompute, "MUST_RECOMPUTE"},
      {Tag::kPreferRecompute, "PREFER_RECOMPUTE"},
      {Tag::kMustOffload, "MUST_OFFLOAD"},
      {Tag::kPreferOffload, "PREFER_OFFLOAD"},
  };
};

// The outcome of a tag.
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
  static constexpr EnumName<Verdict> kAll[] = {
      {Verdict::kNone, "none"},
      {Verdict::kHonoured, "honoured"},
      {Verdict::kImplied, "implied"},
      {Verdict::kMoot, "moot"},
      {Verdict::kOverridden, "overridden"},
      {Verdict::kDropped, "dropped"},
      {Verdict::kConflicting, "conflicting"},
  };
};

// The outcome of the proof that a pass preserves the results of the module.
enum class ProofVerdict : uint8_t {
  kNone = 0,
  kProved = 1,
  kUnproved = 2,
};
template <>
struct EnumNames<ProofVerdict> {
  static constexpr EnumName<ProofVerdict> kAll[] = {
      {ProofVerdict::kNone, "none"},
      {ProofVerdict::kProved, "proved"},
      {ProofVerdict::kUnproved, "unproved"},
  };
};

// The rule that decided the outcome of a tag. ir/step/tag_rules.h describes the rules, in the order
// in which they are tried.
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
  static constexpr EnumName<TagRule> kAll[] = {
      {TagRule::kNone, "none"},
      {TagRule::kBackwardTag, "backward_tag"},
      {TagRule::kSymbol, "symbol"},
      {TagRule::kUnrepeatable, "unrepeatable"},
      {TagRule::kRandomSlot, "random_slot"},
      {TagRule::kWritten, "written"},
      {TagRule::kRegionBoundary, "region_boundary"},
      {TagRule::kMustRecompute, "must_recompute"},
      {TagRule::kPreference, "preference"},
      {TagRule::kReplay, "replay"},
      {TagRule::kMustSave, "must_save"},
      {TagRule::kInherited, "inherited"},
      {TagRule::kMerged, "merged"},
      {TagRule::kCollective, "collective"},
      {TagRule::kOffload, "offload"},
      {TagRule::kReturned, "returned"},
      {TagRule::kKeptAnyway, "kept_anyway"},
      {TagRule::kExcluded, "excluded"},
      {TagRule::kCut, "cut"},
      {TagRule::kShape, "shape"},
  };
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
  static constexpr EnumName<OriginKind> kAll[] = {
      {OriginKind::kUnspecified, "unspecified"}, {OriginKind::kRecomputed, "recomputed"},
      {OriginKind::kMerged, "merged"},           {OriginKind::kReplaced, "replaced"},
      {OriginKind::kImported, "imported"},
  };
};

enum class ControlKind : uint8_t {
  kOrder = 0,
  kDataReady = 1,
  kKeepAlive = 2,
};
template <>
struct EnumNames<ControlKind> {
  static constexpr EnumName<ControlKind> kAll[] = {
      {ControlKind::kOrder, "order"},
      {ControlKind::kDataReady, "data_ready"},
      {ControlKind::kKeepAlive, "keep_alive"},
  };
};

enum class Capture : uint8_t {
  kUnspecified = 0,
  kAllowed = 1,
  kForbidden = 2,
  kBreakBefore = 3,
};
template <>
struct EnumNames<Capture> {
  static constexpr EnumName<Capture> kAll[] = {
      {Capture::kUnspecified, "unspecified"},
      {Capture::kAllowed, "allowed"},
      {Capture::kForbidden, "forbidden"},
      {Capture::kBreakBefore, "break_before"},
  };
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
  static constexpr EnumName<GraphKind> kAll[] = {
      {GraphKind::kUnspecified, "unspecified"},
      {GraphKind::kForwardLossBackward, "forward_loss_backward"},
      {GraphKind::kJoint, "joint"},
      {GraphKind::kForward, "forward"},
      {GraphKind::kBackward, "backward"},
      {GraphKind::kInference, "inference"},
      {GraphKind::kSubgraph, "subgraph"},
      {GraphKind::kOptimizer, "optimizer"},
  };
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
  static constexpr EnumName<InputRole> kAll[] = {
      {InputRole::kUnspecified, "unspecified"},
      {InputRole::kParameter, "parameter"},
      {InputRole::kBuffer, "buffer"},
      {InputRole::kInput, "input"},
      {InputRole::kTangent, "tangent"},
      {InputRole::kSavedValue, "saved_value"},
      {InputRole::kRngState, "rng_state"},
      {InputRole::kOptimizerState, "optimizer_state"},
      {InputRole::kSeed, "seed"},
      {InputRole::kRngOffset, "rng_offset"},
      {InputRole::kToken, "token"},
      {InputRole::kConstant, "constant"},
      {InputRole::kSymbol, "symbol"},
      {InputRole::kBackwardState, "backward_state"},
  };
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
  static constexpr EnumName<OutputRole> kAll[] = {
      {OutputRole::kUnspecified, "unspecified"},
      {OutputRole::kUser, "user"},
      {OutputRole::kLoss, "loss"},
      {OutputRole::kGradient, "gradient"},
      {OutputRole::kMutation, "mutation"},
      {OutputRole::kSavedValue, "saved_value"},
      {OutputRole::kRngState, "rng_state"},
      {OutputRole::kToken, "token"},
      {OutputRole::kIntermediateBase, "intermediate_base"},
      {OutputRole::kRngOffset, "rng_offset"},
  };
};

enum class RngState : uint8_t {
  kImplicit = 0,
  kKnown = 1,
};
template <>
struct EnumNames<RngState> {
  static constexpr EnumName<RngState> kAll[] = {
      {RngState::kImplicit, "implicit"},
      {RngState::kKnown, "known"},
  };
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
