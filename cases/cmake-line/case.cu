// The lines CMake writes for llama.cpp, xgboost and LightGBM, in miniature.
//#Headers: whole
//#Args: -forward-unknown-to-host-compiler -DGGML_VERSION=\"0.9\" -DNDEBUG -D_GNU_SOURCE -I{work}/inc -O3 -std=c++17 "--generate-code=arch=compute_75,code=[compute_75]" "--generate-code=arch=compute_86,code=[sm_86]" "--generate-code=arch=compute_120a,code=[sm_120a]" -Xcompiler=-fPIC -use_fast_math -extended-lambda -compress-mode=size -Xcompiler "-Wmissing-declarations -Wall" -MD -MT case.cu.o -MF case.cu.o.d -x cu -c {work}/case.cu -o case.cu.o
//#Args: -ccbin=/usr/bin/c++ -std=c++17 -Xcompiler=-fPIC --expt-extended-lambda --expt-relaxed-constexpr -Xfatbin=-compress-all --default-stream per-thread -Xcompiler=-fopenmp -MD -MT T -MF F -x cu -c case.cu -o x.o -arch=sm_90
//#Args: -forward-unknown-to-host-compiler -O3 -lineinfo -O3 -DNDEBUG -std=c++17 "--generate-code=arch=compute_90,code=[compute_90,sm_90]" -Xcompiler=-fPIC -MD -MT y.o -MF y.o.d -x cu -rdc=true -c {work}/case.cu -o y.o
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
void launch(float *x) { add<<<1, 32>>>(x, 1.0f); }
