#pragma once

namespace fxopt {

struct Row {
  struct Part {};
  long bytes = 0;
};

enum class RowKind { kNarrow };

class Sum {};

template <>
struct Table<int> {};

}  // namespace fxopt

namespace fxopt::io {

struct NewRow {};

}  // namespace fxopt::io
