// Device profiles: the grammar and the built-in profiles.

#include "ir/device/profile.h"

#include <string>

#include "ir/device/call_formulas.h"
#include "ir/ops/op.h"
#include "tests/catch.h"
#include "tests/must.h"

namespace fxopt {
namespace {

std::optional<ProfileText> no_include(const std::string&, std::string_view) { return std::nullopt; }

std::optional<ProfileText> builtin_include(const std::string&, std::string_view file) { return builtin_profile(file); }

Result<std::unique_ptr<DeviceProfile>> parse(std::vector<std::string> texts) {
  std::vector<ProfileText> parts;
  for (const std::string& text : texts) parts.push_back({"part.device", text});
  return DeviceProfile::parse(parts, no_include);
}

std::unique_ptr<DeviceProfile> good(std::vector<std::string> texts) { return must(parse(std::move(texts))); }

// The message and the line of the error for `text`.
std::string refusal(const std::string& text) {
  const Result<std::unique_ptr<DeviceProfile>> profile = parse({text});
  if (profile.ok()) return "accepted";
  CHECK(profile.error().code == ErrorCode::kBadProfile);
  return std::to_string(profile.error().where.line) + ": " + profile.error().message;
}

std::optional<int64_t> bytes_of(const DeviceProfile& profile, size_t row, std::string_view symbol = "",
                                int64_t value = 0) {
  SymbolValues values = profile.constants;
  if (!symbol.empty()) values[profile.strings.find(symbol)] = value;
  return profile.exprs.evaluate(profile.hidden[row].value, values);
}

TEST_CASE("device profile: statements, comments, constants of constants", "[device]") {
  const std::unique_ptr<DeviceProfile> profile = good({R"(
# a comment
device toy   # behind a statement, too
constant device.sms = 10
constant device.slots = device.sms * 4 [source]
flops bf16 = 1000 [source]
flops f8 = 2000
flops tf32 = 500
bandwidth = 300 [source]
outside context = 1024 [estimate]
outside-communicator ring = group.ranks * 8 [measured]
temporary aten.mm.default copy = self.bytes [source]
workspace aten.mm.* library = device.slots [estimate]
persistent aten.bmm.default handle = 64 [measured]
)"});
  CHECK(profile->name == "part");
  CHECK(profile->constant("device.slots") == 40);
  CHECK_FALSE(profile->constant("device.warps").has_value());
  CHECK(profile->flops_for(DType::kBfloat16) == 1000);
  CHECK(profile->flops_for(DType::kFloat8E4m3fn) == 2000);
  CHECK_FALSE(profile->flops_for(DType::kFloat32).has_value());
  CHECK(profile->bandwidth == 300);
  REQUIRE(profile->outside.size() == 2);
  CHECK_FALSE(profile->outside[0].per_communicator);
  CHECK(profile->outside[1].per_communicator);
  CHECK(profile->outside[1].evidence == Evidence::kMeasured);
  REQUIRE(profile->hidden.size() == 3);
  CHECK(profile->hidden[0].kind == HiddenKind::kTemporary);
  CHECK(bytes_of(*profile, 0, "self.bytes", 7) == 7);
  CHECK(profile->hidden[1].every_overload);
  CHECK(profile->hidden[1].target == "aten.mm");
  CHECK(bytes_of(*profile, 1) == 40);
  CHECK(profile->hidden[2].kind == HiddenKind::kPersistent);
}

TEST_CASE("device profile: definitions see their parameters and the call, and those before them", "[device]") {
  const std::unique_ptr<DeviceProfile> profile = good({R"(
define twice(x) = 2 * x
define with_copy(x, y) = twice(x) + twice(y) + self.bytes
define nothing() = 0
temporary aten.mm.default a = with_copy(3, twice(5)) [source]
temporary aten.mm.default b = Where(nothing(), 1 // nothing(), 9) [source]
)"});
  CHECK(bytes_of(*profile, 0, "self.bytes", 100) == 6 + 20 + 100);
  CHECK(bytes_of(*profile, 1) == 9);  // the branch not taken has no value
}

TEST_CASE("device profile: a later text replaces what it says anew", "[device]") {
  const std::unique_ptr<DeviceProfile> profile =
      good({"constant device.sms = 1\nworkspace aten.mm.default w = 1 [source]\noutside context = 1 [source]",
            "constant device.sms = 2\nworkspace aten.mm.default w = 5 [measured]\noutside context = 2 [source]\n"
            "workspace aten.mm.* w = 7 [source]"});
  CHECK(profile->constant("device.sms") == 2);
  REQUIRE(profile->hidden.size() == 2);  // a replaced row, and one for all overloads
  CHECK(bytes_of(*profile, 0) == 5);
  CHECK(profile->outside.size() == 1);
  // In reverse order, the row for all overloads replaces the row for one.
  const std::unique_ptr<DeviceProfile> all =
      good({"workspace aten.mm.default w = 1 [source]\nworkspace aten.mm.default v = 1 [source]",
            "workspace aten.mm.* w = 7 [source]"});
  REQUIRE(all->hidden.size() == 2);
  CHECK(all->hidden[0].name == "v");
}

TEST_CASE("device profile: what is malformed is refused with its line", "[device]") {
  CHECK(refusal("\nworkspce aten.mm.default w = 1 [source]") == "2: 'workspce' is not a known statement");
  CHECK(refusal("device") == "1: device has no name");
  CHECK(refusal("constant device.sms 132") == "1: '=' is missing");
  CHECK(refusal("constant two words = 1") == "1: the name before '=' must be one word");
  CHECK(refusal("constant a = b") == "1: constant 'a' has no value");
  CHECK(refusal("constant a = 1 +").starts_with("1: '1 +' is not an expression"));
  CHECK(refusal("constant a = 1 [rumour]") == "1: '[rumour]' is not a kind of evidence");
  CHECK(refusal("constant a = 1\nconstant a = 2") == "2: 'constant a' is given twice");
  CHECK(refusal("workspace aten.mm.default w = 1") == "1: the evidence for 'w' is missing");
  CHECK(refusal("workspace mm w = 1 [source]") == "1: 'mm' is not an operator");
  CHECK(refusal("workspace aten.mm.default w = [source]") == "1: 'w' has no value");
  CHECK(refusal("workspace aten.mm.default w = half(2) [source]") == "1: there is no function 'half'");
  CHECK(refusal("define half(x) = x // 2\nworkspace aten.mm.default w = half(2, 3) [source]") ==
        "2: 'half' is given 2 arguments");
  CHECK(refusal("define half = 2").starts_with("1: a definition is not of the form"));
  CHECK(refusal("flops bf17 = 1") == "1: 'bf17' is not a dtype");
  CHECK(refusal("flops bf16 = 0") == "1: flops is '0'");
  CHECK(refusal("bandwidth = fast") == "1: bandwidth is 'fast'");
  CHECK(refusal("include ../other.device") == "1: '../other.device' is in another folder");
  CHECK(refusal("include other.device") == "1: there is no file 'other.device'");
}

TEST_CASE("device profile: what never has a value is refused with its line, what may have one is not", "[device]") {
  const auto row = [](const std::string& value) { return "\nworkspace aten.mm.default w = " + value + " [source]"; };
  const auto never = [](const std::string& part) { return "2: '" + part + "' never has a value"; };
  const auto accepts = [&](const std::string& value) { return refusal(row(value)) == "accepted"; };
  CHECK(refusal(row("1.5 * self.numel")) == never("1.5"));
  CHECK(refusal(row("Where(self.numel, 2, inf)")) == never("inf"));
  CHECK(refusal(row("self.numel // (3 - 3)")) == never("self.numel // (3 - 3)"));
  CHECK(accepts("self.numel // (3 - 2)"));
  CHECK(refusal(row("self.numel % 0 + 1")) == never("self.numel % 0"));
  CHECK(refusal(row("CeilDiv(self.numel, 0)")) == never("CeilDiv(self.numel, 0)"));
  CHECK(accepts("0 // self.numel"));
  CHECK(refusal(row("7 / 2")) == never("7 / 2"));
  CHECK(accepts("8 / 2"));
  CHECK(refusal(row("2 ** 63")) == never("2 ** 63"));
  CHECK(accepts("2 ** 62"));
  CHECK(refusal(row("CeilDiv(self.numel)")) == never("CeilDiv(self.numel)"));
  CHECK(refusal(row("Where(self.numel, 1)")) == never("Where(self.numel, 1)"));
  CHECK(refusal(row("Where(0, 1 // 0, 9)")) == never("1 // 0"));  // in either branch
  CHECK(refusal("constant a = 0\nconstant b = 8 // a") == "2: constant 'b' has no value");
  CHECK(refusal("constant a = 1\nconstant b = 8 // a") == "accepted");
  CHECK(refusal("\ndefine bad(x) = x // 0") == never("x // 0"));
}

TEST_CASE("device profile: what a definition makes of its arguments never has a value, or may", "[device]") {
  const std::string define = "define per(x, y) = Where(y > 8, 1, x // y)\n";
  const auto refused = [&](const std::string& value) {
    return refusal(define + "workspace aten.mm.default w = " + value + " [source]");
  };
  CHECK(refused("self.numel + per(4, 0)") == "2: 'self.numel + per(4, 0)' never has a value");
  CHECK(refused("self.numel + per(4, 1)") == "accepted");
  CHECK(refused("Where(1, per(4, 0), 1)") == "2: 'Where(1, per(4, 0), 1)' never has a value");
  CHECK(refused("Where(0, per(4, 0), 1)") == "accepted");
  CHECK(refused("Where(self.numel, per(4, 0), 1)") == "accepted");
  CHECK(refused("Where(self.numel, per(4, 0), per(5, 0))").starts_with("2: "));
  CHECK(refused("per(4, device.sms)") == "accepted");  // another text may set device.sms
  CHECK(refusal("define Max(x) = x") == "1: 'Max' is a built-in function");
  CHECK(refusal("define q(x, x) = x") == "1: 'q' has the parameter 'x' twice");
}

// Definitions f0, f1, ...: each is `body` with the definition before it in place of f@.
std::string chain(size_t length, const std::string& body) {
  std::string text = "define f0(x) = x\n";
  for (size_t i = 1; i < length; ++i) {
    std::string line = "define f" + std::to_string(i) + "(x) = " + body + "\n";
    for (size_t at = 0; (at = line.find('@')) != std::string::npos;) line.replace(at, 1, std::to_string(i - 1));
    text += line;
  }
  return text;
}

TEST_CASE("device profile: definitions stand on each other as deeply as the limit of parts allows", "[device]") {
  const std::string last = "workspace aten.mm.default w = f999(1) [source]";
  CHECK(bytes_of(*good({chain(1000, "f@(x) + 1") + last}), 0) == 1000);
  const std::string parts = "expanded expressions have more than 1048576 parts";
  for (const std::string& text : {chain(30000, "f@(x) + 1"), chain(40, "f@(2 * x) + f@(3 * x)")}) {
    CHECK(refusal(text).ends_with(": " + parts));
  }
}

TEST_CASE("device profile: a file that includes itself is refused", "[device]") {
  const std::string text = "include loop.device";
  const ProfileText part{"loop.device", text};
  const auto include = [&part](const std::string&, std::string_view) { return std::optional<ProfileText>(part); };
  const Error profile = DeviceProfile::parse(std::vector<ProfileText>{part}, include).error();
  CHECK(profile.message == "files include each other too deeply");
}

bool is_device(std::string_view name) { return !name.starts_with("torch-"); }

std::unique_ptr<DeviceProfile> builtin(std::string_view framework, std::string_view device) {
  const std::vector<ProfileText> texts = {*builtin_profile(framework), *builtin_profile(device)};
  return must(DeviceProfile::parse(texts, builtin_include));
}

TEST_CASE("device profile: each that is built in is complete", "[device]") {
  size_t devices = 0;
  for (const std::string_view name : builtin_profiles()) {
    if (!is_device(name)) continue;
    ++devices;
    CAPTURE(name);
    const std::unique_ptr<DeviceProfile> profile = builtin("torch-2.15", name);
    for (const char* constant : {"device.sms", "device.capability", "device.memory"}) {
      CHECK(profile->constant(constant).value_or(0) > 0);
    }
    CHECK(profile->bandwidth.value_or(0) > 0);
    for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBfloat16}) {
      CHECK(profile->flops_for(dtype).value_or(0) > 0);
    }
  }
  CHECK(devices == 4);
}

TEST_CASE("device profile: each row built in is about an operator, and asks what its calls can answer", "[device]") {
  for (const std::string_view framework : builtin_profiles()) {
    if (is_device(framework)) continue;
    const std::unique_ptr<DeviceProfile> profile = builtin(framework, "h100");
    CHECK(profile->hidden.size() > 100);
    for (const HiddenRow& row : profile->hidden) {
      CAPTURE(framework, row.target, row.name);
      size_t ops = 0;
      for (const Op* op : builtin_ops()) {
        if (!is_about(row, *op)) continue;
        // Rows for every overload may name arguments that out-variants and their kin spell
        // differently.
        const std::string misfit = explain_misfit(*profile, row, *op);
        if (row.every_overload && !misfit.empty()) continue;
        ++ops;
        CHECK(misfit == "");
      }
      CHECK((ops > 0 || row.target.starts_with("torchtitan.")));
    }
  }
}

TEST_CASE("device profile: each row of work is about an operator", "[device]") {
  const std::vector<ProfileText> texts = {*builtin_profile("operators")};
  const std::unique_ptr<DeviceProfile> profile = must(DeviceProfile::parse(texts, builtin_include));
  for (const WorkRow& row : profile->work) {
    CAPTURE(row.target);
    size_t ops = 0;
    for (const Op* op : builtin_ops()) ops += is_about(row, *op) && explain_misfit(*profile, row, *op).empty() ? 1 : 0;
    CHECK(ops > 0);
  }
}

}  // namespace
}  // namespace fxopt
