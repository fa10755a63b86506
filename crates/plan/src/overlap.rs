//! Lets the host compile run before the fat binary exists (docs/design/overlap.md).
