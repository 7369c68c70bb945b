#pragma once

// The only place that includes Catch2: version 3 if installed, else version 2. Assertions do not
// catch exceptions, so an exception ends the test case; in return, files compile a sixth faster.
#define CATCH_CONFIG_FAST_COMPILE
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
