//! What a request is for, by its URI.

use http::Uri;

/// Whether the response is a stream that lasts until it is closed.
pub fn is_watch(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    query
        .split('&')
        .any(|pair| pair == "watch=true" || pair == "watch=1")
}

/// Whether the response is a page of a list.
pub fn is_page(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    query.split('&').any(|pair| pair.starts_with("limit="))
}
