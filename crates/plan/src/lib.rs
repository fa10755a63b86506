//! What nvcc would do: command line and dry-run text in, typed task graph out. Touches no files, processes, clock or environment.
