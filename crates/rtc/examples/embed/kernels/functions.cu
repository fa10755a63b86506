/// A device function that is compiled to LTO-IR while the program is built.
#include <geometry/point.cuh>

__device__ float twice_the_length(geometry::point p) { return 2 * p.length(); }
