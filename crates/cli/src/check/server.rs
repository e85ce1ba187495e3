//! Checks whether the version of the API server is supported.

use super::finding::Finding;
use crate::reader::Reader;

/// The supported minor versions of Kubernetes 1.
const SUPPORTED: std::ops::RangeInclusive<u32> = 30..=37;
const BEST_EFFORT: std::ops::Range<u32> = 26..30;

pub(super) fn check(reader: &Reader) -> Finding {
    const CHECK: &str = "server";
    let message = format!("the API server is {}", reader.version);
    let (first, last) = (SUPPORTED.start(), SUPPORTED.end());
    if SUPPORTED.contains(&reader.minor) {
        Finding::ok(CHECK, message)
    } else if BEST_EFFORT.contains(&reader.minor) {
        Finding::warning(CHECK, message).remedy(format!(
            "use Kubernetes 1.{first} or later; older versions lack ValidatingAdmissionPolicy"
        ))
    } else {
        Finding::warning(CHECK, message).remedy(format!(
            "use Kubernetes 1.{first} to 1.{last}, which are tested"
        ))
    }
}
