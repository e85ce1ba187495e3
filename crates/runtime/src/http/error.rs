//! Reads the errors of an API server, and of the connection to it.

use jiff::SignedDuration;
use kube::core::Status;

/// The longest wait that a server can ask for.
const MAX_RETRY_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// The API server's refusal, if the error is one.
pub fn status(error: &kube::Error) -> Option<&Status> {
    match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

/// The HTTP status of a refusal; `None` if no response arrived.
pub fn code(error: &kube::Error) -> Option<u16> {
    status(error).map(|status| status.code)
}

/// After how long a server that is too busy (429, 503) asks for the next attempt, at most five
/// minutes; `None` if it does not.
pub fn retry_after(error: &kube::Error) -> Option<SignedDuration> {
    let status = status(error).filter(|status| matches!(status.code, 429 | 503))?;
    let seconds = status.details.as_ref()?.retry_after_seconds;
    let span = SignedDuration::from_secs(i64::from(seconds));
    (seconds > 0).then_some(span.min(MAX_RETRY_AFTER))
}

/// The API server's message if it has responded, otherwise the client's message with its causes.
/// The message may be untrusted: it has any form, and is as long as a response may be.
pub fn message(error: &kube::Error) -> String {
    match status(error) {
        Some(status) if !status.message.is_empty() => status.message.clone(),
        Some(status) => format!("the API server answered {}", status.code),
        None => match error {
            // The error around it adds no information.
            kube::Error::Service(error) => chain(&**error),
            error => chain(error),
        },
    }
}

/// An error and its sources, each once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !message.contains(&more) {
            message = format!("{message}: {more}");
        }
        source = error.source();
    }
    message
}
