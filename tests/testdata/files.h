#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace fxopt {

// Returns all graph files below testdata/, sorted. If FXOPT_TESTDATA_BYTES is set, larger files are
// left out.
std::vector<std::string> testdata_files();

// True if no file is left out. Counts over all files hold only then.
bool has_all_testdata();

// Loads the file of testdata/ with this name. Fails the test if the file does not load.
std::unique_ptr<Module> load_testdata(const std::string& name);

// Prepares a module and runs the given passes. "" means no passes. Fails the test if the
// preparation or a pass fails.
void optimize(Module& module, const std::string& passes);
// Calls load_testdata(), and then optimize().
std::unique_ptr<Module> load_optimized(const std::string& name, const std::string& passes);

}  // namespace fxopt
