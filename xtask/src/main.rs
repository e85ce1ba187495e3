//! The project's one task runner.

fn main() {}
