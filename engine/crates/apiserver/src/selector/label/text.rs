//! Parses the string of a label selector as Kubernetes does
//! (k8s.io/apimachinery/pkg/labels/selector.go), with the same error messages.

use kubemu_admission::{FieldError, name};

use super::{Operator, Requirement};

/// Parses all requirements of a selector.
///
/// # Errors
/// The token that was found and those that were expected.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut reader = Reader::new(text);
    let mut all = Vec::new();
    loop {
        let next = reader.peek();
        if next.is_empty() {
            return Ok(all);
        }
        if !is_identifier(next) && next != "!" {
            let expected = "!, identifier, or 'end of string'";
            return Err(format!("found '{next}', expected: {expected}"));
        }
        let one = reader.requirement();
        all.push(one.map_err(|why| format!("unable to parse requirement: {why}"))?);
        match reader.next() {
            "" => return Ok(all),
            "," => {
                let after = reader.peek();
                if !is_identifier(after) && after != "!" {
                    return Err(format!(
                        "found '{after}', expected: identifier after ','"
                    ));
                }
            }
            other => {
                return Err(format!("found '{other}', expected: ',' or 'end of string'"));
            }
        }
    }
}

/// The tokens of a selector; the end is an empty token.
struct Reader<'a> {
    tokens: Vec<&'a str>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            tokens: tokens(text),
            at: 0,
        }
    }

    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or_default()
    }

    fn next(&mut self) -> &'a str {
        let next = self.peek();
        self.at += 1;
        next
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut key = self.next();
        let negated = key == "!";
        if negated {
            key = self.next();
        }
        if !is_identifier(key) {
            return Err(format!("found '{key}', expected: identifier"));
        }
        if let Some(wrong) = name::label_key(key).first() {
            return Err(FieldError::invalid("<nil>", key.into(), wrong).to_string());
        }
        let of = |operator, values| Requirement {
            key: key.to_owned(),
            operator,
            values,
        };
        if negated {
            return Ok(of(Operator::DoesNotExist, Vec::new()));
        }
        if matches!(self.peek(), "" | ",") {
            return Ok(of(Operator::Exists, Vec::new()));
        }
        let operator = match self.next() {
            "in" | "=" | "==" => Operator::In,
            "notin" | "!=" => Operator::NotIn,
            ">" => Operator::Greater,
            "<" => Operator::Less,
            other => {
                let known = "in, notin, =, ==, !=, gt, lt";
                return Err(format!("found '{other}', expected: {known}"));
            }
        };
        let is_set = matches!(self.tokens.get(self.at - 1), Some(&("in" | "notin")));
        let values = if is_set {
            self.set()?
        } else {
            vec![self.value()?]
        };
        check_values(key, operator, &values)?;
        Ok(of(operator, values))
    }

    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek(), "" | ",") {
            return Ok(String::new());
        }
        let value = self.next();
        if !is_identifier(value) {
            return Err(format!("found '{value}', expected: identifier"));
        }
        Ok(value.to_owned())
    }

    fn set(&mut self) -> Result<Vec<String>, String> {
        let open = self.next();
        if open != "(" {
            return Err(format!("found '{open}' expected: '('"));
        }
        let mut values: Vec<String> = Vec::new();
        loop {
            match self.next() {
                ")" => {
                    values.push(String::new());
                    break;
                }
                "," => values.push(String::new()),
                value if is_identifier(value) => {
                    values.push(value.to_owned());
                    match self.next() {
                        "," => {}
                        ")" => break,
                        other => {
                            return Err(format!("found '{other}', expected: ',' or ')'"));
                        }
                    }
                }
                other => {
                    return Err(format!(
                        "found '{other}', expected: ',', ')' or identifier"
                    ));
                }
            }
        }
        values.sort();
        values.dedup();
        Ok(values)
    }
}

fn check_values(key: &str, operator: Operator, values: &[String]) -> Result<(), String> {
    for (index, value) in values.iter().enumerate() {
        let numeric = matches!(operator, Operator::Greater | Operator::Less);
        if numeric && value.parse::<i64>().is_err() {
            let path = format!("values[{index}]");
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            return Err(FieldError::invalid(path, value.as_str().into(), why).to_string());
        }
        if let Some(wrong) = name::label_value(value).first() {
            let path = format!("values[{index}][{key}]");
            let error = FieldError::invalid(path, value.as_str().into(), wrong);
            return Err(error.to_string());
        }
    }
    Ok(())
}

fn is_sign(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn is_identifier(token: &str) -> bool {
    token.chars().next().is_some_and(|it| !is_sign(it))
}

fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("==") || rest.starts_with("!=") {
            2
        } else if is_sign(first) {
            1
        } else {
            let end = rest.find(|c: char| is_sign(c) || c.is_whitespace());
            end.unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn parse_errors_have_kubernetes_messages() {
        let rows = [
            (
                "a===b",
                "unable to parse requirement: found '=', expected: identifier",
            ),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            (
                "a in (b",
                "unable to parse requirement: found '', expected: ',' or ')'",
            ),
            (
                "a in",
                "unable to parse requirement: found '' expected: '('",
            ),
            (
                ",",
                "found ',', expected: !, identifier, or 'end of string'",
            ),
            ("a,", "found '', expected: identifier after ','"),
        ];
        for (text, why) in rows {
            assert_eq!(parse(text).unwrap_err(), why, "{text}");
        }
    }
}
