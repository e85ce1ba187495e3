//! Field paths in rules and selectable fields: `.spec.a`, `.m['a.b']`.

use crate::schema::node::{Additional, Node};

/// Follows `path` through the schema. Returns it in the form that errors print, with the node
/// at its end.
///
/// # Errors
/// Why it is not a path of this schema, with Kubernetes' message.
pub(crate) fn parse<'a>(
    path: &str,
    node: &'a Node,
) -> Result<(String, &'a Node), String> {
    let mut rest = path;
    let mut node = node;
    let mut printed = String::new();
    while !rest.is_empty() {
        let (name, after) = if let Some(after) = rest.strip_prefix('.') {
            plain(after)?
        } else if let Some(after) = rest.strip_prefix('[') {
            let (name, after) = quoted(after)?;
            (unescape(name)?, after)
        } else {
            let token = rest.split(['.', '[', ']']).next().unwrap_or(rest);
            let token = if token.is_empty() { "]" } else { token };
            return Err(format!("expected [ or . but got: {token}"));
        };
        node = step(node, &name, &mut printed)?;
        rest = after;
    }
    Ok((printed, node))
}

fn plain(text: &str) -> Result<(String, &str), String> {
    if text.is_empty() {
        return Err("unexpected end of JSON path".to_owned());
    }
    let end = match text.find(['.', '[', ']']) {
        // Of two delimiters in a row, the second is treated as a name.
        Some(0) => 1,
        Some(end) => end,
        None => text.len(),
    };
    let (name, after) = text.split_at(end);
    Ok((name.to_owned(), after))
}

/// The text inside `'…']`, still escaped.
fn quoted(text: &str) -> Result<(&str, &str), String> {
    if text.is_empty() {
        return Err("unexpected end of JSON path".to_owned());
    }
    let refuse = || {
        let token = text.split(['.', '[', ']']).next().unwrap_or(text);
        format!("expected single quoted string but got {token}")
    };
    let inner = text.strip_prefix('\'').ok_or_else(refuse)?;
    let mut before = ' ';
    let end = inner.char_indices().find_map(|(at, c)| {
        let is_end = c == '\'' && before != '\\';
        before = c;
        is_end.then_some(at)
    });
    let (name, after) = inner.split_at(end.ok_or_else(refuse)?);
    let after = after.strip_prefix('\'').unwrap_or(after);
    match after.strip_prefix(']') {
        Some(after) => Ok((name, after)),
        None if after.is_empty() => Err("unexpected end of JSON path".to_owned()),
        None => Err(format!(
            "expected ] but got {}",
            after.chars().take(1).collect::<String>()
        )),
    }
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('\'') => '\'',
            Some('\\') | None => '\\',
            Some(c) => {
                return Err(format!("invalid string literal: invalid escape char \\{c}"));
            }
        });
    }
    Ok(out)
}

fn step<'a>(
    node: &'a Node,
    name: &str,
    printed: &mut String,
) -> Result<&'a Node, String> {
    let no_field = || "does not refer to a valid field".to_owned();
    if node.properties.is_empty() {
        let each = match &node.additional {
            Additional::Unset => return Err(no_field()),
            Additional::Each(each) => each,
            // The API server accepts any name, and there is no schema below it.
            Additional::Allowed(_) => node,
        };
        printed.extend(["[", name, "]"]);
        return Ok(each);
    }
    if !printed.is_empty() {
        printed.push('.');
    }
    printed.push_str(name);
    node.properties.get(name).ok_or_else(no_field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KubeVersion;
    use crate::field::Path;
    use crate::schema::Structural;
    use serde_json::json;

    fn follow(path: &str) -> Result<String, String> {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"x-y": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
        }});
        let version = KubeVersion::default();
        let schema = Structural::read(&schema, &Path::Root, version);
        let schema = schema.map_err(|errors| format!("{errors:?}"))?;
        parse(path, schema.root()).map(|(path, _)| path)
    }

    #[test]
    fn names_and_keys_are_followed_and_printed_in_the_form_of_errors() {
        assert_eq!(follow(".a.x-y").as_deref(), Ok("a.x-y"));
        assert_eq!(follow(".a['x-y']").as_deref(), Ok("a.x-y"));
        assert_eq!(follow(".m['a.b']").as_deref(), Ok("m[a.b]"));
        assert_eq!(follow(r".m['it\'s']").as_deref(), Ok("m[it's]"));
    }

    #[test]
    fn a_path_that_is_not_in_the_schema_is_rejected() {
        let rows = [
            (".b", "does not refer to a valid field"),
            ("a", "expected [ or . but got: a"),
            (".", "unexpected end of JSON path"),
            (".m[k]", "expected single quoted string but got k"),
            (".m['k'", "unexpected end of JSON path"),
            (
                r".m['\q']",
                r"invalid string literal: invalid escape char \q",
            ),
        ];
        for (path, why) in rows {
            assert_eq!(follow(path), Err(why.to_owned()), "{path}");
        }
    }
}
