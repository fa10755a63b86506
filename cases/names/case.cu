// Spaces, quotes and non-ASCII in paths and macros.
//#Args: -c "sub dir/a file.cu" -o "out put.o" -arch=sm_90 -DTEXT="\"a 'b' c\""
//#Args: -MD -c "sub dir/ünï çödé/日本.cu" -o "sub dir/ünï çödé/出力.o" -I "sub dir" -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: -ptx "sub dir/a file.cu" -DTEXT='"\\ ; & | * ?"' -arch=sm_90
//#Args: -lineinfo -dc "sub dir/it's.cu" -arch=sm_90 -I"sub dir"
//#Args: -c case.cu -o macro.o -arch=sm_90 -D'F(x)=((x)+1)' '-DS=\"é ;*\"' -DEMPTY= -DPLAIN
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
const char *text() { return S EMPTY; }
