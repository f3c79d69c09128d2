"""The IR: TVM TIR with our tile operations. The only folder that knows TVM's Python API."""
