//! Every built-in kind, walked through everything that has to know it.
