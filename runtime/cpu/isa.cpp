#include "runtime/cpu/isa.h"

#include <algorithm>
#include <string>

#include "core/error.h"

extern "C" {
const FxKernelTable* fxopt_cpu_kernels_base();
#if FX_HAS_AVX2
const FxKernelTable* fxopt_cpu_kernels_avx2();
const FxKernelTable* fxopt_cpu_kernels_avx512();
#endif
}

namespace fxopt {
namespace {

struct Isa {
  std::string_view name;
  bool (*is_here)();
  const FxKernelTable* (*table)();
};

// __builtin_cpu_supports() also checks whether the system saves the wide registers.
constexpr Isa kIsas[] = {
#if FX_HAS_AVX2
    {"avx512",
     [] {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
     },
     fxopt_cpu_kernels_avx512},
    {"avx2",
     [] {
       return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
              __builtin_cpu_supports("bmi2");
     },
     fxopt_cpu_kernels_avx2},
#endif
    {"base", [] { return true; }, fxopt_cpu_kernels_base},
};

}  // namespace

std::vector<std::string_view> cpu_isas() {
  std::vector<std::string_view> names;
  for (const Isa& isa : kIsas) {
    if (isa.is_here()) names.push_back(isa.name);
  }
  return names;
}

Result<const FxKernelTable*> cpu_kernels(std::string_view wanted) {
  std::string names;
  for (const Isa& isa : kIsas) {
    if (!isa.is_here()) continue;
    if (wanted.empty() || wanted == isa.name) return isa.table();
    names += (names.empty() ? "" : ", ") + std::string(isa.name);
  }
  return Error{ErrorCode::kBadOptionValue,
               "no kernels for the instruction set '" + std::string(wanted) + "' on this processor",
               "this processor supports " + names,
               {}};
}

const FxKernel* find_kernel(const FxKernelTable& table, std::string_view name) {
  const FxKernel* end = table.kernels + table.num_kernels;
  const FxKernel* found = std::lower_bound(
      table.kernels, end, name, [](const FxKernel& kernel, std::string_view text) { return kernel.name < text; });
  return found != end && found->name == name ? found : nullptr;
}

}  // namespace fxopt
