#![doc = include_str!("../README.md")]

pub mod base64;
pub mod netip;
pub mod pem;
pub mod regexp;
pub mod strconv;
pub mod time;
pub mod unicode;
pub mod url;
