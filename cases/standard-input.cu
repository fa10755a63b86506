// nvcc takes a source from standard input (here an empty one). With nothing in it the
// module id ends in the process id, so the object is not compared.
//#Hit: passthrough
//#Outputs: nothing
//#Args: -x cu -c - -o out.o
