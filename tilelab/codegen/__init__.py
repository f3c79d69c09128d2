"""Code generators: device-stage IR to CUDA C++, HIP C++ and, through TVM, LLVM."""
