"""The helpers of each dialect, as tables of small C++ functions."""
