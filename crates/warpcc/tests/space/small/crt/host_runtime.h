// The toolkit's own, without the mathematics that it includes.
#define __COMMON_FUNCTIONS_H__
#include_next "crt/host_runtime.h"
