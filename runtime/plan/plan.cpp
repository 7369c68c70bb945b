#include "runtime/plan/plan.h"

#include <bit>

namespace fxopt {
namespace {

constexpr int64_t kMaxSmall = (int64_t{1} << 55) - 1;

}  // namespace

uint32_t Plan::add_string(std::string_view text) {
  slices_.push_back({text_.size(), text.size()});
  text_ += text;
  return static_cast<uint32_t>(slices_.size() - 1);
}

std::string_view Plan::text(uint32_t index) const {
  if (index >= slices_.size()) return {};
  return std::string_view(text_).substr(slices_[index].first, slices_[index].size);
}

FxWord Plan::number(int64_t value) {
  if (value >= -kMaxSmall && value <= kMaxSmall) return make_word(FX_WORD_INT, static_cast<uint64_t>(value));
  numbers.push_back(value);
  return make_word(FX_WORD_NUMBER, numbers.size() - 1);
}

FxWord Plan::real(double value) {
  numbers.push_back(std::bit_cast<int64_t>(value));
  return make_word(FX_WORD_DOUBLE, numbers.size() - 1);
}

const FxPlan& Plan::view() {
  strings_.clear();
  strings_.reserve(slices_.size());
  for (const Slice& slice : slices_) strings_.push_back({text_.data() + slice.first, slice.size});
  graph_views_.clear();
  for (const std::unique_ptr<Plan>& graph : graphs) graph_views_.push_back(&graph->view());
  view_ = FxPlan{};
  view_.version = FX_PLAN_VERSION;
  view_.size = sizeof(FxPlan);
  view_.hash = hash;
  view_.name = name;
  const auto set = [](const auto& vector, auto& data, uint64_t& count) {
    data = vector.data();
    count = vector.size();
  };
  for_each_array(view_, set);
  set(strings_, view_.strings, view_.num_strings);
  set(graph_views_, view_.graphs, view_.num_graphs);
  return view_;
}

}  // namespace fxopt
