//! What a request asks for, by its URI.

use http::Uri;

/// Whether the answer is a stream that goes on until somebody ends it.
pub fn is_watch(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    query
        .split('&')
        .any(|pair| pair == "watch=true" || pair == "watch=1")
}

/// Whether the answer is a page of a list.
pub fn is_page(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    query.split('&').any(|pair| pair.starts_with("limit="))
}
