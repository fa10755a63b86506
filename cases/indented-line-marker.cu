// A line of a raw string that is a line marker for nvcc 13.5, and none for 11.8 to 13.0.
//#Args: -MD -ptx case.cu -o a.ptx
//#Fallback: a line marker after blanks
//#Args: -MMD -MP -cubin case.cu -o b.cubin
//#Fallback: a line marker after blanks
//#Args: -ptx case.cu -o c.ptx
const char *text = R"(
	# 1 "text-after-a-tab.y" 1
)";
__global__ void add(float *x) { x[0] += 1; }
