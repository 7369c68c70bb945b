#pragma once

// The one place that includes Catch2: version 3 where it is installed, else version 2. Assertions do
// not catch exceptions, which then end the test case: files compile in a sixth less time.
#define CATCH_CONFIG_FAST_COMPILE
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
