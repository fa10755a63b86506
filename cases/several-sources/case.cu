// Several sources in one call: each an object of its own, or all one program.
//#Args: -c case.cu other.cu host.cpp -arch=sm_90
//#Args: case.cu other.cu host.cpp -o prog -arch=sm_90 -L{toolkit}/lib
int other();
int host();
__global__ void k(int *x) { *x = 1; }
int main() { k<<<1, 1>>>(nullptr); return other() + host(); }
