// A C++ file through nvcc: only the host compiler runs.
//#File: host.cpp
//| #include <vector>
//| int host() { return (int)std::vector<int>{1, 2}.size(); }
//#File: plain.c
//| int plain(void) { return 1; }
//#Args: -c host.cpp -o host.o -O2
//#Args: -c plain.c -o plain.o
//#Args: -MD -c host.cpp
