//! Numbers and quoted text, after Go's `strconv`.

mod float;
mod quote;

pub use float::{format_float, parse_float, parse_uint};
pub use quote::{Quoted, QuotedBytes};
