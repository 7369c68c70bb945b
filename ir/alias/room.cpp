#include "ir/alias/room.h"

#include "ir/graph/module.h"
#include "ir/values/call_args.h"
#include "ir/values/values.h"

namespace fxopt {
namespace {

const std::vector<Dim>* sizes_of(const Graph& graph, const Tensor* tensor) {
  return tensor != nullptr && tensor->sizes.is_valid() ? &graph.module().dims(tensor->sizes) : nullptr;
}

const std::vector<Dim>* argument_sizes(const Graph& graph, NodeId call, size_t position) {
  const NodeId node = CallArgs(graph, call)[position].as_node();
  return node.is_valid() ? sizes_of(graph, single_tensor(graph, node)) : nullptr;
}

// Returns the sizes of two tensors after broadcasting.
std::vector<Dim> broadcast(const std::vector<Dim>& one, const std::vector<Dim>& other) {
  std::vector<Dim> sizes = one.size() < other.size() ? other : one;
  const std::vector<Dim>& fewer = one.size() < other.size() ? one : other;
  const size_t skipped = sizes.size() - fewer.size();
  for (size_t i = 0; i < fewer.size(); ++i) {
    Dim& size = sizes[skipped + i];
    if (size.is_static() && size.value == 1) size = fewer[i];
  }
  return sizes;
}

std::optional<Room> room_of_terms(const Graph& graph, NodeId call) {
  const std::vector<Dim>* input = argument_sizes(graph, call, 0);
  const std::vector<Dim>* target = argument_sizes(graph, call, 1);
  if (input == nullptr || target == nullptr) return std::nullopt;
  if (CallArgs(graph, call).named("reduction").as_int() == 0) return std::nullopt;
  return Room{.sizes = broadcast(*input, *target)};
}

// Returns the room of the results `values` and `counts`. A result that was not requested is empty.
std::optional<Room> room_of_runs(const Graph& graph, NodeId call, size_t index, const Tensor& result) {
  const std::vector<Dim>* input = argument_sizes(graph, call, 0);
  const std::vector<Dim>* own = sizes_of(graph, &result);
  if (input == nullptr || own == nullptr || (index != 0 && index != 2)) return std::nullopt;
  if (index == 0) return Room{.sizes = *input};
  if (own->size() != 1 || (own->front().is_static() && own->front().value == 0)) return std::nullopt;
  const std::optional<int64_t> along = CallArgs(graph, call).named("dim").as_int();
  if (!along.has_value()) return Room{.sizes = *input};
  const int64_t rank = static_cast<int64_t>(input->size());
  const int64_t dim = *along < 0 ? *along + rank : *along;
  return dim < 0 || dim >= rank ? std::nullopt
                                : std::optional<Room>(Room{.sizes = {(*input)[static_cast<size_t>(dim)]}});
}

// Returns the room of the results `offset2bag` and `bag_size`.
std::optional<Room> room_of_bags(const Graph& graph, NodeId call, size_t index, const Tensor& result) {
  const std::vector<Dim>* sizes = index == 1   ? sizes_of(graph, &result)
                                  : index == 2 ? argument_sizes(graph, call, 2)
                                               : nullptr;
  if (sizes == nullptr || sizes->size() != 1) return std::nullopt;
  const bool is_empty = sizes->front().is_static() && sizes->front().value == 0;
  return Room{.sizes = *sizes, .more = index == 1 && !is_empty ? 1 : 0};
}

}  // namespace

std::optional<Room> find_room(const Graph& graph, NodeId call, size_t index, const Tensor& result) {
  switch (graph.op(call).holds) {
    case Holds::kItself:
      return std::nullopt;
    case Holds::kTerms:
      return room_of_terms(graph, call);
    case Holds::kColumns: {
      const std::vector<Dim>* columns = argument_sizes(graph, call, 0);
      return columns == nullptr ? std::nullopt : std::optional<Room>(Room{.sizes = *columns});
    }
    case Holds::kRuns:
      return room_of_runs(graph, call, index, result);
    case Holds::kBags:
      return room_of_bags(graph, call, index, result);
  }
  return std::nullopt;
}

}  // namespace fxopt
