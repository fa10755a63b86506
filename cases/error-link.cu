// The host linker fails: exit 1, no program.
//#Exit: 1
//#Args: case.cu -o prog -arch=sm_90 -L{toolkit}/lib
void nowhere();
__global__ void k(int *x) {}
int main() { nowhere(); }
