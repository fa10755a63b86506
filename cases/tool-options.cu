// Options for the tools, with commas, quotes, joined and apart.
//#Headers: whole
//#Args: -c case.cu -o a.o -arch=sm_90 -Xcompiler -Wall,-O1 -Xcompiler=-fPIC -Xptxas -O1 -Xptxas=-v,--warn-on-spills -Xcudafe --diag_suppress=177,--display_error_number -Xfatbin -compress-all
//#Stderr: ignore-timing
//#Args: -c case.cu -o b.o -arch=sm_90 -Xcompiler '-DTEXT="a b"' -Xcompiler "'-fno-common'" --compiler-options "-fPIC -Wextra"
//#Args: -c case.cu -o c.o -arch=sm_90 -Xptxas "-maxrregcount=32" -Xfatbin=-compress-all -Xcudafe "--diag_suppress=20012"
//#Args: -rdc=true case.cu -o prog -arch=sm_90 -Xnvlink -v,--suppress-stack-size-warning -Xlinker -rpath,/nowhere -L{toolkit}/lib
//#Stderr: ignore-timing
//#Args: -c case.cu -o e.o -arch=sm_90 --diag-suppress 177 -Werror cross-execution-space-call -maxrregcount 32 -use_fast_math --resource-usage
//#Stderr: ignore-timing
__global__ void k(float *x) { int unused; *x = sqrtf(*x) / x[1]; }
int main() { k<<<1, 1>>>(nullptr); return 0; }
