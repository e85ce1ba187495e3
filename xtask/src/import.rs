//! What a Rust file imports.

/// An imported path and the name that it gets.
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    pub(crate) name: String,
}

/// The paths of every `use` of a formatted file before its tests. Text within a literal counts as code.
pub(crate) fn imports(text: &str) -> Vec<Import> {
    let code = (text.lines())
        .take_while(|line| *line != "mod tests {")
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = Vec::new();
    for statement in code.split(';') {
        let starts =
            std::iter::once(0).chain(statement.match_indices('\n').map(|(at, _)| at));
        let mut trees = starts.filter_map(|at| tree(statement.get(at..)?.trim_start()));
        if let Some(tree) = trees.next() {
            add(&[], tree, &mut found);
        }
    }
    found
}

/// The tree of imports of a text that begins with `use`, whatever its visibility.
fn tree(statement: &str) -> Option<&str> {
    let (before, tree) = statement.split_once("use ")?;
    let is_visibility = before.is_empty()
        || before.starts_with("pub") && before.ends_with(' ') && !before.contains('\n');
    is_visibility.then_some(tree)
}

/// Adds the paths of a tree of imports below a path.
fn add(above: &[String], tree: &str, found: &mut Vec<Import>) {
    let (path, below) = match tree.split_once('{') {
        Some((path, below)) => (path, below.trim_end().strip_suffix('}')),
        None => (tree, None),
    };
    let (path, alias) = match path.split_once(" as ") {
        Some((path, alias)) => (path, Some(alias.trim().to_owned())),
        None => (path, None),
    };
    let words = path.split("::").map(str::trim);
    let words = words.filter(|word| !word.is_empty() && *word != "*");
    let path = [above, &words.map(str::to_owned).collect::<Vec<_>>()].concat();
    if let Some(below) = below {
        let mut depth = 0_u32;
        for tree in below.split(|sign| {
            match sign {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            sign == ',' && depth == 0
        }) {
            if !tree.trim().is_empty() {
                add(&path, tree, found);
            }
        }
    } else if let Some(last) = path.last() {
        let name = alias.unwrap_or_else(|| last.clone());
        found.push(Import { path, name });
    }
}

#[cfg(test)]
mod tests {
    use super::imports;

    #[test]
    fn each_path_of_an_import_has_the_name_that_it_gets() {
        let found = imports(
            "// Text; use z;\nuse a::{\n    self,\n    b::{C as D, d},\n    *,\n};\n\n\
             fn f() {}\npub(crate) use super::e;\n\
             #[cfg(test)]\nmod tests {\n    use f;\n}\n",
        );
        let found: Vec<_> = (found.iter())
            .map(|it| (it.path.join("::"), &*it.name))
            .collect();
        let path = |path: &str| path.to_owned();
        assert_eq!(
            found,
            [
                (path("a::self"), "self"),
                (path("a::b::C"), "D"),
                (path("a::b::d"), "d"),
                (path("a"), "a"),
                (path("super::e"), "e"),
            ]
        );
    }
}
