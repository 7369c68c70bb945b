#include "tests/fuzz/safetensors_laws.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace fxopt {
namespace {

std::string broken_refusal(const Error& error, const std::string& file) {
  if (error_info(error.code).exit != ExitCode::kInputRejected) return "refused as something else than bad input";
  if (error.message.empty() || error.hint.empty()) return "refused without a message or a hint";
  if (error.message.size() > 1000)
    return "refused with a message of " + std::to_string(error.message.size()) + " bytes";
  if (error.where.file != file) return "refused without the file";
  return error.where.has_byte || !error.where.field.empty() ? "" : "refused without a place";
}

std::string broken_tensor(std::span<const std::byte> bytes, const Safetensors& content,
                          const SafetensorsTensor& tensor) {
  if (tensor.name.empty() || content.find(tensor.name) != &tensor) return "not found by its name";
  uint64_t count = static_cast<uint64_t>(element_size(tensor.dtype));
  for (const int64_t size : tensor.sizes) {
    if (size < 0) return "a negative size";
    count *= static_cast<uint64_t>(size);
  }
  if (count != tensor.bytes.size()) return "a byte count that does not fit the sizes";
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const auto first = reinterpret_cast<uintptr_t>(tensor.bytes.data());
  const bool is_inside = first >= begin + 8 && first - begin + count <= bytes.size();
  return is_inside ? "" : "outside of the file";
}

}  // namespace

bool same_content(const Safetensors& a, const Safetensors& b) {
  return a.metadata() == b.metadata() &&
         std::equal(a.tensors().begin(), a.tensors().end(), b.tensors().begin(), b.tensors().end(),
                    [](const SafetensorsTensor& x, const SafetensorsTensor& y) {
                      return x.name == y.name && x.dtype == y.dtype && x.sizes == y.sizes &&
                             std::equal(x.bytes.begin(), x.bytes.end(), y.bytes.begin(), y.bytes.end());
                    });
}

std::string broken_law(std::span<const std::byte> bytes, const std::string& file, const Result<Safetensors>& result) {
  if (!result.ok()) {
    const std::string broken = broken_refusal(result.error(), file);
    return broken.empty() ? broken : broken + ": " + format_error(result.error());
  }
  uint64_t header_bytes = 0;
  for (size_t i = 0; i < 8; ++i) header_bytes |= std::to_integer<uint64_t>(bytes[i]) << 8 * i;
  uint64_t data_bytes = 0;
  for (const SafetensorsTensor& tensor : result->tensors()) {
    const std::string broken = broken_tensor(bytes, *result, tensor);
    if (!broken.empty()) return broken + ": " + tensor.name;
    data_bytes += tensor.bytes.size();
  }
  if (8 + header_bytes + data_bytes != bytes.size()) return "the tensors do not cover the data";
  const Result<std::string> written = print_safetensors(result->tensors(), result->metadata());
  if (!written.ok()) return "not written: " + format_error(written.error());
  const Result<Safetensors> again = parse_safetensors(bytes_of(*written), file);
  if (!again.ok()) return "not read again: " + format_error(again.error());
  if (!same_content(*result, *again)) return "another content when read again";
  const Result<std::string> twice = print_safetensors(again->tensors(), again->metadata());
  return twice.ok() && *twice == *written ? "" : "other bytes when written again";
}

}  // namespace fxopt
