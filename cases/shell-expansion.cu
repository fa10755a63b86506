// nvcc passes its commands through a shell, which expands this before gcc sees it.
//#Args: -ptx case.cu -DTEXT="$HOME" -arch=sm_90
//#Fallback: shell syntax
//#Hit: none
__global__ void k(const char **out) { *out = "x"; }
