// nvcc itself knows no @file (gcc does); warpcc must not know better.
//#File: opts.txt
//| -DVALUE=1
//#Args: @opts.txt -c case.cu -o a.o
//#Exit: 1
//#Args: -Xcompiler @opts.txt -c case.cu -o b.o -DVALUE=2 -arch=sm_90
__global__ void k(int *x) { *x = VALUE; }
