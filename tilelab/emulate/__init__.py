"""Run the IR of any stage, and compiled MI300X kernels, on NumPy."""
