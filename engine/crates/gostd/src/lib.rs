#![doc = include_str!("../README.md")]
// Why not the crates of these names: internals/decisions/0076-go-s-parsers-are-ported.md.

pub mod base64;
pub mod netip;
pub mod pem;
pub mod regexp;
pub mod strconv;
pub mod time;
pub mod unicode;
pub mod url;
