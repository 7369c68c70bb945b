#include "ir/io/pb.h"

#include <google/protobuf/io/coded_stream.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>  // forbidden

#include "fxgraph.pb.h"
#include "ir/graph/graph.h"
