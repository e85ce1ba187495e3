//! Files of a crate that import each other in a circle: none of them can be read, tested or moved without
//! the others.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::Path;

use crate::Faults;
use crate::import::{self, Import};

/// The number of files that a circle may have.
const LARGEST: usize = 12;

/// The path of a module below its crate.
type Module = Vec<String>;

/// The modules that each module imports.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// Compares the circles of a crate with the limit.
pub(crate) fn check(name: &str, folder: &Path) -> Result<Faults, Box<dyn Error>> {
    let mut sources = BTreeMap::new();
    read(&folder.join("src"), &Module::new(), &mut sources)?;
    Ok(faults(name, LARGEST, &imports(&sources)))
}

/// A fault for each circle of more than `most` files.
fn faults(name: &str, most: usize, imports: &Imports) -> Faults {
    let circles = circles(imports);
    let larger = circles.iter().filter(|circle| circle.len() > most);
    let described = larger.map(|circle| {
        let files: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
        format!(
            "{name}: {} files import each other in a circle, at most {most}: {}",
            files.len(),
            files.join(", ")
        )
    });
    described.collect()
}

/// Adds what the files below a folder import, by module.
fn read(
    folder: &Path,
    module: &Module,
    sources: &mut BTreeMap<Module, Vec<Import>>,
) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let mut module = module.clone();
        module.extend(
            path.file_stem()
                .map(|name| name.to_string_lossy().into_owned()),
        );
        if path.is_dir() {
            read(&path, &module, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            if module == ["lib"] {
                module.clear();
            }
            let imports = import::imports(&fs::read_to_string(&path)?)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            sources.insert(module, imports);
        }
    }
    Ok(())
}

/// The modules that each module imports. A name that the root of the crate passes on is an import of
/// where it comes from.
fn imports(sources: &BTreeMap<Module, Vec<Import>>) -> Imports {
    let root = sources
        .get(&Module::new())
        .map(Vec::as_slice)
        .unwrap_or_default();
    let mut all = Imports::new();
    for (module, imports) in sources.iter().filter(|(module, _)| !module.is_empty()) {
        let imported = imports.iter().filter_map(|import| {
            let path = absolute(module, &import.path, sources)?;
            let passed_on = root.iter().find(|it| path.first() == Some(&it.name));
            let path = match passed_on {
                Some(passed_on) => [&passed_on.path, path.get(1..)?].concat(),
                None => path,
            };
            let lengths = (1..=path.len()).rev();
            let mut prefixes = lengths.filter_map(|length| path.get(..length));
            prefixes
                .find(|prefix| sources.contains_key(*prefix))
                .map(<[String]>::to_vec)
        });
        let imported = imported.filter(|it| it != module).collect();
        all.insert(module.clone(), imported);
    }
    all
}

/// A path of a module's import, from the root of the crate; `None` if it is one of another crate.
fn absolute(
    module: &Module,
    path: &[String],
    sources: &BTreeMap<Module, Vec<Import>>,
) -> Option<Module> {
    let above = path.iter().take_while(|word| *word == "super").count();
    let (start, rest) = match path.first()?.as_str() {
        "crate" => (&[][..], path.get(1..)?),
        "self" => (module.as_slice(), path.get(1..)?),
        "super" => (
            module.get(..module.len().checked_sub(above)?)?,
            path.get(above..)?,
        ),
        child => {
            let child = [module.as_slice(), &[child.to_owned()]].concat();
            sources
                .contains_key(&child)
                .then_some((module.as_slice(), path))?
        }
    };
    Some([start, rest].concat())
}

/// The modules that import each other, each of them in one set at most.
fn circles(imports: &Imports) -> BTreeSet<BTreeSet<&Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = imports
        .keys()
        .map(|module| (module, reach(module, imports)))
        .collect();
    let circles = reached.iter().map(|(module, reached_from_it)| {
        let back =
            |other: &&&Module| reached.get(*other).is_some_and(|it| it.contains(module));
        let circle: BTreeSet<&Module> =
            reached_from_it.iter().filter(back).copied().collect();
        circle
    });
    circles.filter(|circle| !circle.is_empty()).collect()
}

/// The modules that a module imports, directly or by way of others.
fn reach<'a>(module: &Module, imports: &'a Imports) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Module> = imports.get(module).into_iter().flatten().collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(imports.get(module).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found_through_children_parents_and_the_root() {
        let file = |module: &[&str], text: &str| {
            let module: Module = module.iter().map(|it| (*it).to_owned()).collect();
            (module, import::imports(text).unwrap())
        };
        let sources = BTreeMap::from([
            file(&[], "mod a; mod b; pub use b::Inner as Outer;"),
            file(&["a"], "mod child; use child::X; use std::fmt;"),
            file(&["a", "child"], "use crate::{Outer, other::Y};"),
            file(&["b"], "use super::a::{self, Z};"),
            file(&["other"], "use crate::unknown;"),
        ]);
        let found = faults("x", 2, &imports(&sources));
        let expected =
            "x: 3 files import each other in a circle, at most 2: a, a::child, b";
        assert_eq!(found, [expected]);
        assert!(faults("x", 3, &imports(&sources)).is_empty());
    }

    #[test]
    fn every_circle_above_the_limit_is_reported_beside_the_largest() {
        let imports = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "e"), ("e", "d")];
        let imports = imports.map(|(from, to)| {
            let imported = BTreeSet::from([vec![to.to_owned()]]);
            (vec![from.to_owned()], imported)
        });
        let found = faults("x", 1, &Imports::from(imports));
        let expected = [
            "x: 3 files import each other in a circle, at most 1: a, b, c",
            "x: 2 files import each other in a circle, at most 1: d, e",
        ];
        assert_eq!(found, expected);
    }
}
