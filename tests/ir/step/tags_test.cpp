#include "ir/step/tags.h"

#include <algorithm>
#include <vector>

#include "ir/step/tag_rules.h"
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
  };
  const std::vector<Row> rows = {
      {Tag::kMustRecompute, Tag::kMustSave, Tag::kMustRecompute},
      {Tag::kMustRecompute, Tag::kPreferSave, Tag::kMustRecompute},
      {Tag::kMustRecompute, Tag::kMustOffload, Tag::kMustRecompute},
      {Tag::kPreferRecompute, Tag::kPreferSave, Tag::kPreferRecompute},
      {Tag::kMustSave, Tag::kPreferRecompute, Tag::kMustSave},
      {Tag::kMustSave, Tag::kPreferSave, Tag::kMustSave},
      {Tag::kMustSave, Tag::kPreferOffload, Tag::kMustSave},
      {Tag::kNone, Tag::kMustSave, Tag::kMustSave},
      {Tag::kNone, Tag::kPreferOffload, Tag::kPreferOffload},
      {Tag::kMustOffload, Tag::kMustSave, Tag::kMustOffload},
      {Tag::kMustOffload, Tag::kPreferRecompute, Tag::kMustOffload},
      {Tag::kPreferOffload, Tag::kPreferSave, Tag::kPreferOffload},
      {Tag::kPreferRecompute, Tag::kPreferOffload, Tag::kPreferRecompute},
  };
  for (const Row& row : rows) {
    INFO(name_of(row.a) << " with " << name_of(row.b));
    CHECK(name_of(stronger_tag(row.a, row.b)) == name_of(row.result));
  }
}

TEST_CASE("merging tags depends on no order", "[tags]") {
  for (const Tag a : all_tags()) {
    CHECK(stronger_tag(a, a) == a);
    for (const Tag b : all_tags()) {
      CHECK(stronger_tag(a, b) == stronger_tag(b, a));
      for (const Tag c : all_tags()) {
        CHECK(stronger_tag(stronger_tag(a, b), c) == stronger_tag(a, stronger_tag(b, c)));
      }
    }
  }
}

TEST_CASE("each rule of the list has its row, once, with words", "[tags]") {
  for (const EnumName<TagRule>& entry : EnumNames<TagRule>::kAll) {
    if (entry.value == TagRule::kNone) continue;
    INFO(entry.name);
    const auto rows = tag_rules();
    CHECK(std::count_if(rows.begin(), rows.end(), [&](const TagRuleText& row) { return row.rule == entry.value; }) ==
          1);
    CHECK_FALSE(tag_rule(entry.value).reason.empty());
  }
  CHECK(tag_rule(TagRule::kNone).rule == TagRule::kNone);
}

}  // namespace
}  // namespace fxopt
