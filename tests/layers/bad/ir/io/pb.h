#pragma once

#include <google/protobuf/message.h>  // forbidden
#include <nlohmann/json_fwd.hpp>      // forbidden
#include "fxgraph.pb.h"               // forbidden
