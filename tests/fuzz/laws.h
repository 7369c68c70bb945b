#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/graph/module.h"

namespace fxopt {

// What must hold of every module that a reader let through, well formed or not. Each returns the law that is broken, in
// words, and the empty string when none is.

// Saved, loaded and saved again it gives the same bytes; through text, and through JSON where `with_json`, too; the
// verifier says what it thinks; storages and memory of a main graph whose nodes stand in order can be analysed. That it
// can be saved at all is left to difference_from(): unknown fields written by hand may keep it from that.
std::string broken_law(const Module& module, bool with_json);

// A pipeline, the `choice`th of a list, run over `module` when the verifier has nothing against it: its output is well
// formed and obeys the laws above, what it claims to have changed is what it changed, and it refuses no input but for
// its tags and phases.
std::string broken_pipeline(Module& module, uint64_t choice);

// `module`, read from `file`, says what the messages in `file` say.
std::string difference_from(std::string_view file, const Module& module);

// For programs that only know crashes: prints what is broken and aborts, unless it is empty.
void require_law(const std::string& broken);

}  // namespace fxopt
