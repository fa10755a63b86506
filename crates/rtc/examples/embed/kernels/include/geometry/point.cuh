/// A point, for kernels that are compiled at run time.
#pragma once

#include "detail/length.cuh"

namespace geometry {
struct point {
  float x, y;
  __device__ float length() const { return detail::length(x, y); }
};
}  // namespace geometry
