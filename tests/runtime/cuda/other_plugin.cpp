// A plugin of another version of fxopt.

#include "runtime/abi/device.h"

extern "C" const FxPlugin* fxopt_plugin(uint32_t) {
  static const FxPlugin plugin = [] {
    FxPlugin made{};
    made.version = FX_DEVICE_VERSION;
    made.size = sizeof(FxPlugin);
    made.build = "9.9.9";
    return made;
  }();
  return &plugin;
}
