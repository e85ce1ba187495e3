//! The modules of a crate.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use syn::{Attribute, Item};

/// The items of the modules of a crate, by path; the path of the root is empty.
#[derive(Default)]
pub(crate) struct Tree(BTreeMap<Vec<String>, Vec<Item>>);

impl Tree {
    /// Reads the modules of a crate with its sources in `folder`.
    pub(crate) fn read(folder: &Path) -> Result<Self, Box<dyn Error>> {
        let mut tree = Self::default();
        let items = parse(&folder.join("lib.rs"))?;
        tree.add(Vec::new(), items, folder)?;
        Ok(tree)
    }

    /// Adds a module; its child modules that are files are in `folder`.
    fn add(
        &mut self,
        path: Vec<String>,
        items: Vec<Item>,
        folder: &Path,
    ) -> Result<(), Box<dyn Error>> {
        for item in &items {
            let Item::Mod(module) = item else { continue };
            if is_for_tests(&module.attrs) {
                continue;
            }
            let name = module.ident.to_string();
            let inner = folder.join(&name);
            let items = match &module.content {
                Some((_, items)) => items.clone(),
                None => parse(&inner.with_extension("rs"))?,
            };
            self.add(joined(&path, &name), items, &inner)?;
        }
        self.0.insert(path, items);
        Ok(())
    }

    /// The items of a module; `None` if there is no such module.
    pub(crate) fn items(&self, path: &[String]) -> Option<&[Item]> {
        self.0.get(path).map(Vec::as_slice)
    }

    /// Every item of the crate.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Item> {
        self.0.values().flatten()
    }
}

/// A path with another name appended.
pub(crate) fn joined(path: &[String], name: &str) -> Vec<String> {
    [path, &[name.to_owned()]].concat()
}

fn parse(file: &Path) -> Result<Vec<Item>, Box<dyn Error>> {
    let text = fs::read_to_string(file)
        .map_err(|error| format!("{}: {error}", file.display()))?;
    let parsed =
        syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(parsed.items)
}

/// Whether the attributes contain `#[cfg(test)]`.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    let mut attributes = attributes.iter().filter(|it| it.path().is_ident("cfg"));
    attributes.any(|it| {
        it.parse_args::<syn::Ident>()
            .is_ok_and(|only| only == "test")
    })
}
