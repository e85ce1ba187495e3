//! How names are written.
