//! Image references, parsed as container engines do (github.com/distribution/reference).

/// The maximum length of a name without its host in bytes.
const MAX_NAME_LENGTH: usize = 255;
/// What precedes a name of Docker Hub that has only one component.
const OFFICIAL: &str = "library/";
/// The maximum length of a tag in bytes.
const MAX_TAG_LENGTH: usize = 128;
/// The separators in a path component.
const SEPARATORS: [char; 3] = ['.', '_', '-'];

/// The tag of an image reference; `latest` if it has neither tag nor digest. `None` if it has only
/// a digest, or is not an image reference.
pub(super) fn tag(image: &str) -> Option<&str> {
    let (named, digest) = match image.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (image, None),
    };
    let (host, rest) = match named.split_once('/') {
        Some((first, rest)) if is_host(first) => (Some(first), rest),
        _ => (None, named),
    };
    let (path, tag) = match rest.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (rest, None),
    };
    let on_hub = host.is_none_or(|it| it.ends_with("docker.io"));
    let is_official = on_hub && !path.contains('/');
    let prefix = if is_official { OFFICIAL } else { "" };
    let length = prefix.len() + path.len();
    let is_valid = host.is_none_or(is_valid_host)
        && path.split('/').all(is_word)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
        && length <= MAX_NAME_LENGTH;
    // A hex digest without its algorithm is not a valid name.
    let is_bare_digest = host.is_none() && is_hexadecimal(named) && named.len() == 64;
    if !is_valid || is_bare_digest {
        return None;
    }
    tag.or_else(|| digest.is_none().then_some("latest"))
}

/// Whether the part before the first slash is a host, and not a path component.
fn is_host(text: &str) -> bool {
    text.contains(['.', ':'])
        || text == "localhost"
        || text.bytes().any(|it| it.is_ascii_uppercase())
}

fn is_valid_host(text: &str) -> bool {
    let is_port = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    if let Some(rest) = text.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else {
            return false;
        };
        let is_address = !address.is_empty()
            && address
                .bytes()
                .all(|it| it.is_ascii_hexdigit() || it == b':');
        let port = port.strip_prefix(':').map_or(port.is_empty(), is_port);
        return is_address && port;
    }
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let is_label = |label: &str| {
        let inner = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(inner)
    };
    name.split('.').all(is_label) && port.is_none_or(is_port)
}

/// Whether a path component is valid: lowercase letters and digits, separated by single dots, one
/// or two underscores, or hyphens.
fn is_word(text: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit();
    let mut between = text.split(is_plain);
    let known = |it: char| is_plain(it) || SEPARATORS.contains(&it);
    if !text.starts_with(is_plain)
        || !text.ends_with(is_plain)
        || !text.chars().all(known)
    {
        return false;
    }
    between.all(|it| {
        matches!(it, "" | "." | "_" | "__") || it.bytes().all(|letter| letter == b'-')
    })
}

fn is_tag(text: &str) -> bool {
    let word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    text.starts_with(word)
        && text.len() <= MAX_TAG_LENGTH
        && text.chars().all(|it| word(it) || it == '.' || it == '-')
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes()
        .all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
}

/// Whether a digest has a known algorithm and the right number of digits.
fn is_digest(text: &str) -> bool {
    let lengths = [("sha256", 64), ("sha384", 96), ("sha512", 128)];
    let Some((algorithm, digits)) = text.split_once(':') else {
        return false;
    };
    let length = lengths.into_iter().find(|it| it.0 == algorithm);
    length.is_some_and(|(_, length)| digits.len() == length && is_hexadecimal(digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_tag_has_the_tag_latest() {
        for image in [
            "a",
            "a/b",
            "example.com/a",
            "Host/a",
            "localhost:5000/a/b",
            "[::1]:80/a",
        ] {
            assert_eq!(tag(image), Some("latest"), "{image}");
        }
        assert_eq!(tag("a:1"), Some("1"));
        assert_eq!(tag("example.com:80/a__b-c:v1.2"), Some("v1.2"));
    }

    #[test]
    fn an_image_with_a_digest_needs_no_tag() {
        let digest = format!("sha256:{}", "0".repeat(64));
        assert_eq!(tag(&format!("a@{digest}")), None);
        assert_eq!(tag(&format!("a:1@{digest}")), Some("1"));
    }

    #[test]
    fn an_invalid_reference_has_no_tag() {
        let hexadecimal = "0".repeat(64);
        for image in [
            "",
            " ",
            "A",
            "a b",
            "a/",
            "/a",
            "a//b",
            "-a",
            "a-",
            "a..b",
            "a___b",
            "é",
            "é\n",
            "a:",
            "a:-1",
            "a:b/c",
            "a@sha256:0",
            "-x.com/a",
            "example.com/",
            "a/B",
            &hexadecimal,
        ] {
            assert_eq!(tag(image), None, "{image}");
        }
    }
}
