#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace fxopt {

// Every graph file below testdata/, sorted.
std::vector<std::string> testdata_files();

// A file of testdata/, by its name there; fails the test when it does not load.
std::unique_ptr<Module> load_testdata(const std::string& name);

// Prepares a module and runs passes on it; "" are none. Fails the test when one of them does.
void optimize(Module& module, const std::string& passes);
// Both.
std::unique_ptr<Module> load_optimized(const std::string& name, const std::string& passes);

}  // namespace fxopt
