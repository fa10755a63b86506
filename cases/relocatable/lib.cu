__device__ int add_one(int x) { return x + 1; }
