//! Parses Rust source as far as its measures need: which lines are code, and where functions are.

/// A function of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The line of its name, from 1.
    pub(crate) line: usize,
    /// Lines of code from the name to the closing brace.
    pub(crate) lines: usize,
    /// Whether other crates may call it with a literal `true` or `false`.
    pub(crate) is_public_with_bool: bool,
}

/// The source without comments and without the contents of strings, with the same lines: what
/// remains of a line is code.
pub(crate) fn code(source: &str) -> String {
    let letters: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < letters.len() {
        let rest = letters.get(at..).unwrap_or_default();
        let (length, replacement) = match rest {
            ['/', '/', ..] => (line_end(rest), ' '),
            ['/', '*', ..] => (block_comment_end(rest), ' '),
            ['r', '"' | '#', ..] if !ends_in_word(&code) => match raw_string_end(rest) {
                Some(end) => (end, '"'),
                None => (1, 'r'),
            },
            ['"', ..] => (string_end(rest), '"'),
            ['\'', '\\', ..] => (char_end(rest), '"'),
            ['\'', _, '\'', ..] => (3, '"'),
            [letter, ..] => (1, *letter),
            [] => break,
        };
        for letter in rest.iter().take(length) {
            code.push(if *letter == '\n' { '\n' } else { replacement });
        }
        at += length;
    }
    code
}

fn ends_in_word(code: &str) -> bool {
    code.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_')
}

fn line_end(rest: &[char]) -> usize {
    rest.iter()
        .position(|letter| *letter == '\n')
        .unwrap_or(rest.len())
}

fn block_comment_end(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(pair) = rest.get(at..).filter(|rest| !rest.is_empty()) {
        match pair {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] if depth == 1 => return at + 2,
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    rest.len()
}

fn string_end(rest: &[char]) -> usize {
    let mut at = 1;
    loop {
        match rest.get(at) {
            Some('\\') => at += 2,
            Some('"') => return at + 1,
            Some(_) => at += 1,
            None => return rest.len(),
        }
    }
}

fn char_end(rest: &[char]) -> usize {
    let end = rest.iter().skip(3).position(|letter| *letter == '\'');
    end.map_or(rest.len(), |end| end + 4)
}

/// The length of a raw string; `None` if the text is a raw identifier or a word.
fn raw_string_end(rest: &[char]) -> Option<usize> {
    let hashes = rest
        .iter()
        .skip(1)
        .take_while(|letter| **letter == '#')
        .count();
    if rest.get(hashes + 1) != Some(&'"') {
        return None;
    }
    let is_end = |window: &[char]| {
        window.first() == Some(&'"') && window.iter().skip(1).all(|letter| *letter == '#')
    };
    let inner = rest.get(hashes + 2..)?;
    let end = inner.windows(hashes + 1).position(is_end);
    Some(end.map_or(rest.len(), |end| end + 2 * hashes + 3))
}

/// The number of lines with code before the file's tests.
pub(crate) fn lines_of_code(code: &str) -> usize {
    before_tests(code)
        .lines()
        .filter(|line| !line.trim().is_empty())
        .count()
}

/// The part of a file before its tests.
pub(crate) fn before_tests(code: &str) -> &str {
    code.split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or(code)
}

/// Every function with a body, in order.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    code.match_indices("fn ")
        .filter(|(at, _)| !code.get(..*at).is_some_and(ends_in_word))
        .filter_map(|(at, _)| function(code, at))
        .collect()
}

fn function(code: &str, at: usize) -> Option<Function> {
    let rest = code.get(at + 3..)?;
    let name: String = rest
        .trim_start()
        .chars()
        .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
        .collect();
    if name.is_empty() {
        return None;
    }
    let open = parameters_start(rest)?;
    let parameters = rest.get(open..open + enclosed(rest.get(open..)?)?)?;
    let after = rest.get(open + parameters.len()..)?;
    let body = after
        .find(['{', ';'])
        .filter(|body| after.get(*body..*body + 1) == Some("{"))?;
    let end = open + parameters.len() + body + enclosed(after.get(body..)?)?;
    let line_start = code.get(..at)?.rfind('\n').map_or(0, |newline| newline + 1);
    let is_public = code.get(line_start..at)?.trim_start().starts_with("pub ");
    Some(Function {
        name,
        line: code.get(..at)?.matches('\n').count() + 1,
        lines: lines_of_code(rest.get(..end)?),
        is_public_with_bool: is_public
            && parameters
                .split([',', ')'])
                .any(|parameter| parameter.ends_with(": bool")),
    })
}

/// The position of the parameters: the first `(` outside the generics.
fn parameters_start(rest: &str) -> Option<usize> {
    let mut depth = 0_i32;
    let mut before = ' ';
    for (at, letter) in rest.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            '(' if depth == 0 => return Some(at),
            '{' | ';' => return None,
            _ => {}
        }
        before = letter;
    }
    None
}

/// The length of the text enclosed by the bracket at its beginning, including the brackets.
fn enclosed(text: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + letter.len_utf8());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{code, functions, lines_of_code};

    #[test]
    fn strings_are_code_and_comments_and_blank_lines_are_not() {
        let source = "//! Doc.\n\nfn a() {} // x\n/* b\n/* c */\n*/\nconst T: &str = \"\n// in\n\";\n";
        assert_eq!(lines_of_code(&code(source)), 4);
    }

    #[test]
    fn braces_in_strings_and_characters_close_nothing() {
        let source = "fn a() {\n    b('}', \"}\", r#\"}\"}\"#, '\\'', b'x');\n}\nfn c<'x>() {\n}\n";
        let found: Vec<_> = functions(&code(source))
            .into_iter()
            .map(|f| (f.name, f.line, f.lines))
            .collect();
        assert_eq!(found, [("a".to_owned(), 1, 3), ("c".to_owned(), 4, 2)]);
    }

    #[test]
    fn a_bool_among_generic_types_is_a_parameter() {
        let source = "impl X {\n    pub fn a<F: Fn(u8) -> u8>(&mut self, f: F, m: Map<u8, (u8, u8)>, \
                      on: bool,) -> u8 {\n        0\n    }\n    fn b(self: Arc<Self>);\n}\n";
        let found = functions(&code(source));
        assert_eq!(found.len(), 1);
        assert!(found[0].is_public_with_bool);
    }

    #[test]
    fn tests_at_the_end_of_a_file_do_not_count() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        assert_eq!(lines_of_code(&code(source)), 1);
    }
}
