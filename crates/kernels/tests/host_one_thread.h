// One thread: nothing waits for others.
static inline void __syncthreads() {}
static inline void __syncwarp() {}
static place blockIdx, threadIdx, blockDim;
