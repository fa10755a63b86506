// What the device text needs on a host: words of CUDA's, vectors, and functions of the device that a host's library lacks.
#include <cmath>
#include <cstdio>
#include <cstring>
#define WARPCC_HOST
#define __device__
#define __forceinline__ inline
#define __shared__ static
struct place { unsigned x, y; };
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
// `erfinv` is not tested on a host.
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned long long)((unsigned __int128)a * b >> 64); }
static inline double rsqrt(double x) { return 1 / std::sqrt(x); }
static inline float rsqrtf(float x) { return (float)(1 / std::sqrt((double)x)); }
static inline double rcbrt(double x) { return 1 / std::cbrt(x); }
static inline float rcbrtf(float x) { return (float)(1 / std::cbrt((double)x)); }
static inline double erfinv(double x) { return x; }
static inline float erfinvf(float x) { return x; }
