#include <stdint.h>

#include "core/log.h"  // forbidden
