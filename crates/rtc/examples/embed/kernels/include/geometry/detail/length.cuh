/// What point.cuh needs, next to it.
#pragma once

namespace geometry::detail {
__device__ inline float length(float x, float y) { return sqrtf(x * x + y * y); }
}  // namespace geometry::detail
