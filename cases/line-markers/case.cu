// Names in dependency files that no file was entered for, and system headers that `-MMD` has all the same.
//#Args: -MD -ptx case.cu -o a.ptx -isystem system
//#Args: -MMD -ptx case.cu -o b.ptx -isystem system
//#Args: -MMD -MP -c case.cu -o c.o -isystem system
//#Args: -MD -g -ptx case.cu -o d.ptx -isystem system
#include <first-line.h>
#include <second-line.h>
#include <plain.h>
const char *text = R"(
# 1 "text.y" 1
# 1 "text with \303\251\t\/.y" 3
x # 1 "text-after-a-letter.y"
# 2 "text-of-line-2.y" 1
)";
__global__ void add(float *x) { x[0] += first + second + PLAIN; }
#line 1 "parser.y"
int parser;
#line 7 "parser-7.y"
int parser_7;
