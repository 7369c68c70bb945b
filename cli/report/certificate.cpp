#include "cli/report/certificate.h"

#include <nlohmann/json.hpp>

#include "cli/print/table.h"
#include "core/bytes.h"
#include "core/text.h"

namespace fxopt {
namespace {

std::string passes_with(const Module& module, const Certificate& certificate, ProofVerdict verdict) {
  std::string out;
  for (const ProvedStep& step : certificate.steps) {
    if (step.verdict == verdict) out += (out.empty() ? "" : ", ") + printable_line(module.text(step.pass));
  }
  return out;
}

}  // namespace

std::string certificate_text(const Module& module, const Certificate& certificate) {
  const std::string proved = passes_with(module, certificate, ProofVerdict::kProved);
  const std::string unproved = passes_with(module, certificate, ProofVerdict::kUnproved);
  std::string out = "proved: " + (proved.empty() ? "nothing" : proved);
  if (!unproved.empty()) out += "; not proved: " + unproved;
  for (size_t i = 0; i < certificate.allowed.size(); ++i) {
    out += (i == 0 ? "; may omit " : ", ") + printable_line(module.text(certificate.allowed[i]));
  }
  std::string rests;
  if (certificate.recorded_views > 0) rests = "the recorded sizes of " + count_text(certificate.recorded_views, "view");
  if (certificate.storage_id_views > 0) {
    rests += (rests.empty() ? "" : " and ") + std::string("the recorded storage ids of ") +
             count_text(certificate.storage_id_views, "view");
  }
  return rests.empty() ? out : out + "; the proof relies on " + rests;
}

nlohmann::ordered_json certificate_json(const Module& module, const Certificate& certificate) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const ProvedStep& step : certificate.steps) {
    nlohmann::ordered_json item = {
        {"pass", module.text(step.pass)}, {"version", module.text(step.version)}, {"verdict", name_of(step.verdict)}};
    if (step.why.is_valid()) item["why"] = module.text(step.why);
    for (const StringId law : step.laws) item["laws"].push_back(module.text(law));
    steps.push_back(std::move(item));
  }
  nlohmann::ordered_json allowed = nlohmann::ordered_json::array();
  for (const StringId word : certificate.allowed) allowed.push_back(module.text(word));
  nlohmann::ordered_json json = {{"computes", module.text(certificate.computes)},
                                 {"steps", steps},
                                 {"allowed", allowed},
                                 {"recorded_views", certificate.recorded_views},
                                 {"storage_id_views", certificate.storage_id_views}};
  if (certificate.calls.is_valid()) json["calls"] = module.text(certificate.calls);
  return json;
}

}  // namespace fxopt
