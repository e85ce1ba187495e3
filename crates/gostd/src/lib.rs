//! What Go's standard library decides about a text: whether it is a URL, a number, an address,
//! a duration or a pattern, what it stands for, and in which words it is refused.
//!
//! Kubernetes is written in Go, and what its API server accepts and says is often just what a
//! package of Go's standard library accepts and says. Each module here is named after such a
//! package and ports the part of it that an API server shows to its clients; each item names
//! the function of Go that it follows. The release is Go 1.26 on amd64, its Unicode is 15.0.
//! Nothing here knows of Kubernetes, does I/O or can fail but by returning what Go returns.
//!
//! `cargo xtask gostd` puts generated texts to Go itself and to this crate and compares.

pub mod base64;
pub mod netip;
pub mod regexp;
pub mod strconv;
pub mod time;
pub mod unicode;
pub mod url;
