//! What a Rust file imports.

use syn::{Item, UseTree};

/// An imported path and the name that it gets.
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    pub(crate) name: String,
}

/// The paths of every `use` of a file, except those within its tests and functions.
///
/// # Errors
/// It is not Rust.
pub(crate) fn imports(text: &str) -> syn::Result<Vec<Import>> {
    let mut found = Vec::new();
    for item in syn::parse_file(text)?.items {
        if let Item::Use(item) = item {
            add(Vec::new(), &item.tree, &mut found);
        }
    }
    Ok(found)
}

/// Adds the paths of a tree of imports below a path.
fn add(mut path: Vec<String>, tree: &UseTree, found: &mut Vec<Import>) {
    let name = match tree {
        UseTree::Path(tree) => {
            path.push(tree.ident.to_string());
            return add(path, &tree.tree, found);
        }
        UseTree::Group(tree) => {
            for tree in &tree.items {
                add(path.clone(), tree, found);
            }
            return;
        }
        UseTree::Name(tree) => {
            path.push(tree.ident.to_string());
            tree.ident.to_string()
        }
        UseTree::Rename(tree) => {
            path.push(tree.ident.to_string());
            tree.rename.to_string()
        }
        // All names of the module.
        UseTree::Glob(_) => String::new(),
    };
    found.push(Import { path, name });
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
        )
        .unwrap();
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
                (path("a"), ""),
                (path("super::e"), "e"),
            ]
        );
    }
}
