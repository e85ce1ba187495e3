//! The `Warning` headers of a response (k8s.io/apiserver/pkg/endpoints/filters/warning.go).

use std::collections::HashSet;

/// The number of characters from which on warnings are truncated.
const MAX_CHARACTERS: usize = 4096;

/// The number of characters of a truncated warning.
const MAX_TRUNCATED: usize = 256;

/// The values of the headers for these warnings: each text once, and without control characters,
/// which a header cannot contain. If all texts together are too long, each is truncated, and those
/// after the limit are left out.
pub(crate) fn headers(warnings: &[String]) -> Vec<String> {
    let mut seen = HashSet::new();
    let texts: Vec<&str> = warnings
        .iter()
        .map(String::as_str)
        .filter(|it| !it.is_empty() && !it.contains(char::is_control))
        .filter(|it| seen.insert(*it))
        .collect();
    let characters: usize = texts.iter().map(|it| it.chars().count()).sum();
    if characters <= MAX_CHARACTERS {
        return texts.into_iter().map(header).collect();
    }
    let (mut added, mut written) = (0, 0);
    let mut headers = Vec::new();
    for text in texts {
        // The text with which the limit is exceeded is always one of the headers.
        if added > MAX_CHARACTERS && written >= MAX_CHARACTERS {
            break;
        }
        let truncated: String = text.chars().take(MAX_TRUNCATED).collect();
        added += text.chars().count();
        written += truncated.chars().count();
        headers.push(header(&truncated));
    }
    headers
}

/// One value, with the text quoted.
fn header(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("299 - \"{text}\"")
}
