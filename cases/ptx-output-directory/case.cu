// No -o: the names are derived, and put into another folder (candle-kernels builds so).
//#Args: --ptx --output-directory out --default-stream per-thread --expt-relaxed-constexpr -std=c++17 -O3 case.cu other.cu
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
