//! What an error of an API server, or on the way to it, says.

use kube::core::Status;

/// The API server's refusal, where it is one.
pub fn status(error: &kube::Error) -> Option<&Status> {
    match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

/// The HTTP status of a refusal; none where no answer came.
pub fn code(error: &kube::Error) -> Option<u16> {
    status(error).map(|status| status.code)
}

/// The API server's message where it has answered, else the client's, with its causes. Whoever has
/// sent it: it may be of any form, and is as long as an answer may be.
pub fn message(error: &kube::Error) -> String {
    match status(error) {
        Some(status) if !status.message.is_empty() => status.message.clone(),
        Some(status) => format!("the API server answered {}", status.code),
        None => match error {
            // What stands around it says nothing.
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
