//! Reads Rust source as tokens, as far as its measures need: comments and blank lines have none.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Group, LexError, TokenStream, TokenTree};

/// The tokens of a file before its tests, without documentation.
pub(crate) struct Source(Vec<TokenTree>);

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

impl Source {
    /// Reads a file.
    pub(crate) fn read(text: &str) -> Result<Self, LexError> {
        let mut tokens = code(text.parse()?);
        let tests = tokens.windows(4).position(|window| match window {
            [
                TokenTree::Group(attribute),
                module,
                name,
                TokenTree::Group(_),
            ] => {
                attribute.stream().to_string() == "cfg (test)"
                    && is_word(module, "mod")
                    && is_word(name, "tests")
            }
            _ => false,
        });
        // The attribute comes after a `#`.
        tokens.truncate(tests.map_or(tokens.len(), |tests| tests - 1));
        Ok(Self(tokens))
    }

    /// The number of lines with code.
    pub(crate) fn lines(&self) -> usize {
        lines(&self.0)
    }

    /// Every function with a body, in order.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        walk(&self.0, &mut |tokens, at| {
            found.extend(function(tokens, at));
        });
        found
    }

    /// The paths of every `use`, each with the name that it gets.
    pub(crate) fn imports(&self) -> Vec<Import> {
        let mut found = Vec::new();
        walk(&self.0, &mut |tokens, at| {
            if tokens.get(at).is_some_and(|it| is_word(it, "use")) {
                let rest = tokens.get(at + 1..).unwrap_or_default();
                let end = rest.iter().position(|it| is_sign(it, ';'));
                imported(
                    &[],
                    rest.get(..end.unwrap_or(0)).unwrap_or_default(),
                    &mut found,
                );
            }
        });
        found
    }

    /// Whether an attribute `#[path]` names the file of a module.
    pub(crate) fn names_a_path(&self) -> bool {
        let mut found = false;
        walk(&self.0, &mut |tokens, at| {
            if let Some([hash, TokenTree::Group(attribute)]) = tokens.get(at..at + 2) {
                found |= is_sign(hash, '#') && starts_with(attribute, "path");
            }
        });
        found
    }
}

/// An imported path and the name that it gets.
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    pub(crate) name: String,
}

/// The tokens without documentation, which `///` turns into attributes.
fn code(tokens: TokenStream) -> Vec<TokenTree> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut code = Vec::with_capacity(tokens.len());
    let mut rest = tokens.as_slice();
    while let [first, after @ ..] = rest {
        rest = match after {
            [TokenTree::Group(it), after @ ..]
                if is_sign(first, '#') && starts_with(it, "doc") =>
            {
                after
            }
            [not, TokenTree::Group(it), after @ ..]
                if is_sign(first, '#') && is_sign(not, '!') && starts_with(it, "doc") =>
            {
                after
            }
            _ => {
                code.push(first.clone());
                after
            }
        };
    }
    code
}

fn starts_with(attribute: &Group, name: &str) -> bool {
    attribute.delimiter() == Delimiter::Bracket
        && (attribute.stream().into_iter().next()).is_some_and(|it| is_word(&it, name))
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(it) if it == word)
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(it) if it.as_char() == sign)
}

/// Calls `visit` for every position of every sequence of tokens.
fn walk(tokens: &[TokenTree], visit: &mut dyn FnMut(&[TokenTree], usize)) {
    for (at, token) in tokens.iter().enumerate() {
        visit(tokens, at);
        if let TokenTree::Group(group) = token {
            walk(&code(group.stream()), visit);
        }
    }
}

fn lines(tokens: &[TokenTree]) -> usize {
    let mut lines = BTreeSet::new();
    walk(tokens, &mut |tokens, at| match tokens.get(at) {
        Some(TokenTree::Group(group)) => {
            lines.extend([
                group.span_open().start().line,
                group.span_close().end().line,
            ]);
        }
        Some(token) => lines.extend(token.span().start().line..=token.span().end().line),
        None => {}
    });
    lines.len()
}

/// The function whose `fn` is at a position.
fn function(tokens: &[TokenTree], at: usize) -> Option<Function> {
    let (before, [keyword, rest @ ..]) = tokens.split_at_checked(at)? else {
        return None;
    };
    let [TokenTree::Ident(name), signature @ ..] = rest else {
        return None;
    };
    if !is_word(keyword, "fn") {
        return None;
    }
    let is_body = |it: &TokenTree| matches!(it, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    let end = (signature.iter()).position(|it| is_body(it) || is_sign(it, ';'))?;
    if !is_body(signature.get(end)?) {
        return None;
    }
    let qualifiers = ["const", "async", "unsafe"];
    let mut before = before.iter().rev();
    let first = before.find(|it| !qualifiers.iter().any(|word| is_word(it, word)));
    let is_public = first.is_some_and(|it| is_word(it, "pub"));
    Some(Function {
        name: name.to_string(),
        line: name.span().start().line,
        lines: lines(rest.get(..end + 2)?),
        is_public_with_bool: is_public && has_bool(parameters(signature)?),
    })
}

/// The parameters: the first parentheses outside the generics.
fn parameters(signature: &[TokenTree]) -> Option<&Group> {
    let (mut depth, mut is_arrow) = (0_u32, false);
    for token in signature {
        match token {
            TokenTree::Group(group) if depth == 0 => return Some(group),
            token if is_sign(token, '<') => depth += 1,
            token if is_sign(token, '>') && !is_arrow => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_arrow = is_sign(token, '-');
    }
    None
}

/// Whether the type of a parameter is `bool`.
fn has_bool(parameters: &Group) -> bool {
    let tokens: Vec<TokenTree> = parameters.stream().into_iter().collect();
    tokens.split(|it| is_sign(it, ',')).any(|parameter| {
        matches!(parameter, [.., colon, ty] if is_sign(colon, ':') && is_word(ty, "bool"))
    })
}

/// Adds the paths of a tree of imports below a path.
fn imported(above: &[String], tree: &[TokenTree], found: &mut Vec<Import>) {
    let mut path = above.to_vec();
    let mut name = None;
    let mut rest = tree.iter();
    while let Some(token) = rest.next() {
        match token {
            TokenTree::Ident(word) if word == "as" => {
                name = rest.next().map(ToString::to_string);
            }
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Group(group) => {
                let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
                for tree in tokens.split(|it| is_sign(it, ',')) {
                    imported(&path, tree, found);
                }
                return;
            }
            _ => {}
        }
    }
    if let Some(last) = path.last() {
        let name = name.unwrap_or_else(|| last.clone());
        found.push(Import { path, name });
    }
}

#[cfg(test)]
mod tests {
    use super::Source;

    fn read(text: &str) -> Source {
        Source::read(text).unwrap()
    }

    #[test]
    fn strings_are_code_and_comments_and_blank_lines_are_not() {
        let source = "//! Doc.\n\nfn a() {} // x\n/* b\n/* c */\n*/\nconst T: &str = \"\n// in\n\";\n";
        assert_eq!(read(source).lines(), 4);
    }

    #[test]
    fn braces_in_strings_and_characters_close_nothing() {
        let source = "fn a() {\n    b('}', \"}\", r#\"}\"}\"#, '\\'', b'x');\n}\nfn c<'x>() {\n}\n";
        let found = read(source).functions();
        let found: Vec<_> = found.iter().map(|f| (&*f.name, f.line, f.lines)).collect();
        assert_eq!(found, [("a", 1, 3), ("c", 4, 2)]);
    }

    #[test]
    fn a_bool_among_generic_types_is_a_parameter() {
        let source = "impl X {\n    pub fn a<F: Fn(u8) -> u8>(&mut self, f: F, m: Map<u8, (u8, u8)>, \
                      on: bool) -> u8 {\n        0\n    }\n    fn b(self: Arc<Self>);\n}\n";
        let found = read(source).functions();
        assert_eq!(found.len(), 1);
        assert!(found[0].is_public_with_bool);
        assert!(!read("pub(crate) fn a(on: bool) {}").functions()[0].is_public_with_bool);
    }

    #[test]
    fn tests_at_the_end_of_a_file_do_not_count() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        assert_eq!(read(source).lines(), 1);
    }

    #[test]
    fn each_path_of_an_import_has_the_name_that_it_gets() {
        let found =
            read("use a::{self, b::C as D, *};\npub(crate) use super::e;\n").imports();
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.path.join("::"), &*it.name))
            .collect();
        let path = |path: &str| path.to_owned();
        assert_eq!(
            found,
            [
                (path("a::self"), "self"),
                (path("a::b::C"), "D"),
                (path("a"), "a"),
                (path("super::e"), "e"),
            ]
        );
    }
}
