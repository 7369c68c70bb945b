#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace fxopt {

// All graph files below testdata/, sorted.
std::vector<std::string> testdata_files();

// A file of testdata/, by its name there. Fails the test if it does not load.
std::unique_ptr<Module> load_testdata(const std::string& name);

// Prepares a module and runs passes on it ("": none). Fails the test if either fails.
void optimize(Module& module, const std::string& passes);
// load_testdata() followed by optimize().
std::unique_ptr<Module> load_optimized(const std::string& name, const std::string& passes);

}  // namespace fxopt
