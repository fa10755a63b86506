// Nothing in it.
//#Args: -c case.cu -o out.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
//#Args: -ptx case.cu -o out.ptx
