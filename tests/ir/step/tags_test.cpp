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
    TagRule rule;
  };
  const std::vector<Row> rows = {
      {Tag::kMustRecompute, Tag::kMustSave, Tag::kMustRecompute, TagRule::kMustRecompute},
      {Tag::kMustRecompute, Tag::kPreferSave, Tag::kMustRecompute, TagRule::kMustRecompute},
      {Tag::kMustRecompute, Tag::kMustOffload, Tag::kMustRecompute, TagRule::kMustRecompute},
      {Tag::kPreferRecompute, Tag::kPreferSave, Tag::kPreferRecompute, TagRule::kPreference},
      {Tag::kMustSave, Tag::kPreferRecompute, Tag::kMustSave, TagRule::kMustSave},
      {Tag::kMustSave, Tag::kPreferSave, Tag::kMustSave, TagRule::kMustSave},
      {Tag::kMustSave, Tag::kPreferOffload, Tag::kMustSave, TagRule::kMustSave},
      {Tag::kNone, Tag::kMustSave, Tag::kMustSave, TagRule::kMerged},
      {Tag::kNone, Tag::kPreferOffload, Tag::kPreferOffload, TagRule::kMerged},
      {Tag::kMustOffload, Tag::kMustSave, Tag::kMustOffload, TagRule::kOffload},
      {Tag::kMustOffload, Tag::kPreferRecompute, Tag::kMustOffload, TagRule::kOffload},
      {Tag::kPreferOffload, Tag::kPreferSave, Tag::kPreferOffload, TagRule::kOffload},
      {Tag::kPreferRecompute, Tag::kPreferOffload, Tag::kPreferRecompute, TagRule::kOffload},
  };
  for (const Row& row : rows) {
    INFO(name_of(row.a) << " with " << name_of(row.b));
    const MergedTag merged = merge_tags(row.a, row.b);
    CHECK(name_of(merged.tag) == name_of(row.result));
    CHECK(name_of(merged.rule) == name_of(row.rule));
  }
}

TEST_CASE("merging tags depends on no order", "[tags]") {
  for (const Tag a : all_tags()) {
    CHECK(merge_tags(a, a).tag == a);
    CHECK(merge_tags(a, a).rule == TagRule::kNone);
    for (const Tag b : all_tags()) {
      CHECK(merge_tags(a, b).tag == merge_tags(b, a).tag);
      CHECK(merge_tags(a, b).rule == merge_tags(b, a).rule);
      for (const Tag c : all_tags()) {
        CHECK(merge_tags(merge_tags(a, b).tag, c).tag == merge_tags(a, merge_tags(b, c).tag).tag);
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
    CHECK_FALSE(tag_rule(entry.value).situation.empty());
    CHECK_FALSE(tag_rule(entry.value).result.empty());
    CHECK_FALSE(tag_rule(entry.value).reason.empty());
  }
  CHECK(tag_rule(TagRule::kNone).rule == TagRule::kNone);
}

}  // namespace
}  // namespace fxopt
