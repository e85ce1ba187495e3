//! Files of a crate that import each other in a circle: none of them can be read, tested or moved without
//! the others.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::Path;

use crate::Faults;
use crate::source::{Import, Source};

/// The number of files that a circle may have.
const LARGEST: usize = 12;

/// Crates with a larger circle, which must not grow.
const LARGER: &[(&str, usize)] = &[("apiserver", 59)];

/// The path of a module below its crate.
type Module = Vec<String>;

/// The modules that each module imports.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// Compares the circles of a crate with the limit.
pub(crate) fn check(name: &str, folder: &Path) -> Result<Faults, Box<dyn Error>> {
    let mut sources = BTreeMap::new();
    read(&folder.join("src"), &Module::new(), &mut sources)?;
    let known = LARGER.iter().find(|(crate_name, _)| *crate_name == name);
    let most = known.map_or(LARGEST, |(_, files)| *files);
    let imports = imports(&sources);
    let largest = largest_circle(&imports);
    if largest.len() <= most {
        return Ok(Faults::new());
    }
    let files: Vec<String> = largest.iter().map(|module| module.join("::")).collect();
    Ok(vec![format!(
        "{name}: {} files import each other in a circle, at most {most}: {}",
        files.len(),
        files.join(", ")
    )])
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
            let text = fs::read_to_string(&path)?;
            let source = Source::read(&text)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            sources.insert(module, source.imports());
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

fn largest_circle(imports: &Imports) -> BTreeSet<&Module> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = imports
        .keys()
        .map(|module| (module, reach(module, imports)))
        .collect();
    let circles = reached.iter().map(|(module, reached_from_it)| {
        let back =
            |other: &&&Module| reached.get(*other).is_some_and(|it| it.contains(module));
        reached_from_it.iter().filter(back).copied().collect()
    });
    circles.max_by_key(BTreeSet::len).unwrap_or_default()
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
            (module, Source::read(text).unwrap().imports())
        };
        let sources = BTreeMap::from([
            file(&[], "mod a; mod b; pub use b::Inner as Outer;"),
            file(&["a"], "mod child; use child::X; use std::fmt;"),
            file(&["a", "child"], "use crate::{Outer, other::Y};"),
            file(&["b"], "use super::a::{self, Z};"),
            file(&["other"], "use crate::unknown;"),
        ]);
        let imports = imports(&sources);
        let circle = largest_circle(&imports);
        let circle: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
        assert_eq!(circle, ["a", "a::child", "b"]);
    }
}
