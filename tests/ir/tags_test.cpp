#include "ir/analysis/tags.h"

#include <vector>

#include "tests/catch.h"

namespace fxopt {
namespace {

std::vector<Tag> all_tags() {
  std::vector<Tag> tags;
  for (const EnumName<Tag>& entry : EnumNames<Tag>::kAll) tags.push_back(entry.value);
  return tags;
}

TEST_CASE("merged tags follow the list", "[tags]") {
  struct Row {
    Tag a, b, result;
    uint8_t rule;
  };
  const std::vector<Row> rows = {
      {Tag::kMustRecompute, Tag::kMustSave, Tag::kMustRecompute, 7},
      {Tag::kMustRecompute, Tag::kPreferSave, Tag::kMustRecompute, 7},
      {Tag::kMustRecompute, Tag::kMustOffload, Tag::kMustRecompute, 7},
      {Tag::kPreferRecompute, Tag::kPreferSave, Tag::kPreferRecompute, 8},
      {Tag::kMustSave, Tag::kPreferRecompute, Tag::kMustSave, 10},
      {Tag::kMustSave, Tag::kPreferSave, Tag::kMustSave, 10},
      {Tag::kMustSave, Tag::kPreferOffload, Tag::kMustSave, 10},
      {Tag::kNone, Tag::kMustSave, Tag::kMustSave, 12},
      {Tag::kNone, Tag::kPreferOffload, Tag::kPreferOffload, 12},
      {Tag::kMustOffload, Tag::kMustSave, Tag::kMustOffload, 14},
      {Tag::kMustOffload, Tag::kPreferRecompute, Tag::kMustOffload, 14},
      {Tag::kPreferOffload, Tag::kPreferSave, Tag::kPreferOffload, 14},
      {Tag::kPreferRecompute, Tag::kPreferOffload, Tag::kPreferRecompute, 14},
  };
  for (const Row& row : rows) {
    INFO(name_of(row.a) << " with " << name_of(row.b));
    const MergedTag merged = merge_tags(row.a, row.b);
    CHECK(name_of(merged.tag) == name_of(row.result));
    CHECK(int{merged.rule} == int{row.rule});
  }
}

TEST_CASE("merging tags depends on no order", "[tags]") {
  for (const Tag a : all_tags()) {
    CHECK(merge_tags(a, a).tag == a);
    CHECK(merge_tags(a, a).rule == 0);
    for (const Tag b : all_tags()) {
      CHECK(merge_tags(a, b).tag == merge_tags(b, a).tag);
      CHECK(merge_tags(a, b).rule == merge_tags(b, a).rule);
      for (const Tag c : all_tags()) {
        CHECK(merge_tags(merge_tags(a, b).tag, c).tag == merge_tags(a, merge_tags(b, c).tag).tag);
      }
    }
  }
}

}  // namespace
}  // namespace fxopt
