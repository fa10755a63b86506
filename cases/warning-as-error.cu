// A warning that the options make an error.
//#Exit: 2
//#Args: -Werror all-warnings -c case.cu -o out.o -arch=sm_90
void f(int *x) { unsigned u = -1; *x = (u < 0); }
