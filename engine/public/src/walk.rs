//! The items that other crates can name, with their paths.

use std::collections::BTreeMap;

use syn::{Item, UseTree, Visibility};

use crate::item;
use crate::tree::{Tree, joined};

/// The items by path, each with its declaration and the lines of its members.
pub(crate) type PublicItems = BTreeMap<String, String>;

/// Returns every item that other crates can name.
pub(crate) fn public(tree: &Tree) -> PublicItems {
    let mut walk = Walk {
        tree,
        public_items: PublicItems::new(),
    };
    walk.module(&[], &[]);
    walk.public_items
}

struct Walk<'t> {
    tree: &'t Tree,
    public_items: PublicItems,
}

impl Walk<'_> {
    /// Adds the public items of the module at `path`, which other crates name `name`.
    fn module(&mut self, path: &[String], name: &[String]) {
        for item in self.tree.items(path).unwrap_or_default() {
            match item {
                Item::Use(reexport) if is_public(&reexport.vis) => {
                    for leaf in leaves(&reexport.tree, &[]) {
                        self.reexport(path, name, &leaf);
                    }
                }
                Item::Mod(module) if is_public(&module.vis) => {
                    let ident = module.ident.to_string();
                    self.module(&joined(path, &ident), &joined(name, &ident));
                }
                _ => self.item(item, name, None),
            }
        }
    }

    /// Adds the target of one path of a `pub use` in the module at `path`.
    fn reexport(&mut self, path: &[String], name: &[String], leaf: &Leaf) {
        let target = within(path, &leaf.path);
        let Some((last, module)) = target.split_last() else {
            return;
        };
        if last == "*" {
            return self.module(module, name);
        }
        if self.tree.items(&target).is_some() {
            return self.module(&target, &joined(name, &leaf.name));
        }
        let Some(items) = self.tree.items(module) else {
            // The target is in another crate.
            let (path, own) = (leaf.path.join("::"), joined(name, &leaf.name).join("::"));
            self.public_items
                .insert(own.clone(), format!("use {path} as {own}"));
            return;
        };
        for item in items {
            match item {
                Item::Use(reexport) => {
                    let leaves = leaves(&reexport.tree, &[]);
                    for inner in leaves.iter().filter(|inner| inner.name == *last) {
                        let inner = Leaf {
                            path: inner.path.clone(),
                            name: leaf.name.clone(),
                        };
                        self.reexport(module, name, &inner);
                    }
                }
                item if item::ident(item).is_some_and(|ident| ident == *last) => {
                    self.item(item, name, Some(&leaf.name));
                }
                _ => {}
            }
        }
    }

    /// Adds an item in the module that other crates name `module`, under another name if there is
    /// one.
    fn item(&mut self, item: &Item, module: &[String], renamed: Option<&str>) {
        let Some(ident) = item::ident(item).filter(|_| item::is_public(item)) else {
            return;
        };
        let path = joined(module, renamed.unwrap_or(&ident)).join("::");
        let mut lines = vec![item::line(item, &path)];
        lines.extend(item::members(item));
        lines.extend(item::associated(self.tree, &ident));
        self.public_items.insert(path, lines.join("\n"));
    }
}

/// A path in a `use`, and the name that the `use` gives to it.
struct Leaf {
    path: Vec<String>,
    name: String,
}

fn leaves(tree: &UseTree, before: &[String]) -> Vec<Leaf> {
    let leaf = |name: String, last: String| Leaf {
        path: joined(before, &last),
        name,
    };
    match tree {
        UseTree::Path(path) => {
            leaves(&path.tree, &joined(before, &path.ident.to_string()))
        }
        UseTree::Name(name) => vec![leaf(name.ident.to_string(), name.ident.to_string())],
        UseTree::Rename(it) => vec![leaf(it.rename.to_string(), it.ident.to_string())],
        UseTree::Glob(_) => vec![leaf("*".to_owned(), "*".to_owned())],
        UseTree::Group(group) => {
            let trees = group.items.iter();
            trees.flat_map(|tree| leaves(tree, before)).collect()
        }
    }
}

/// The path from the root of the crate for a path in the module at `path`.
fn within(path: &[String], named: &[String]) -> Vec<String> {
    match named.first().map(String::as_str) {
        Some("crate") => named[1..].to_vec(),
        Some("self") => [path, &named[1..]].concat(),
        Some("super") => {
            let outer = path.split_last().map_or(path, |(_, outer)| outer);
            within(outer, &[&["self".to_owned()], &named[1..]].concat())
        }
        _ => [path, named].concat(),
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}
