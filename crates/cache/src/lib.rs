//! What is this task, and do we have its result? Digests, keys, witnesses and the local store. Knows no nvcc and no network.
