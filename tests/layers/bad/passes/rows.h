#pragma once

#include "ir/io/rows.h"

namespace fxopt {

struct Row;     // only a declaration
struct OldRow;  // only a declaration

struct NewRow {
  struct Part {};  // nested in another class
};

template <class T>
struct Table {};

struct Row {  // forbidden
  int bytes = 0;
};

enum class RowKind { kWide };  // forbidden

class Sum final : public Row {  // forbidden
};

}  // namespace fxopt
