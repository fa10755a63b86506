//! Runs a task graph: states, order, processes. Prints nothing, knows no command line.
