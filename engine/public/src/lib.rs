//! Lists the public items of a crate, from its sources. An item that is added, changed or removed shows
//! in a diff of the list.
//!
//! Items are read with `syn`, not by the compiler: rustdoc's JSON needs a nightly toolchain and a
//! build of every dependency. Derived traits and other traits of foreign crates are not listed.

mod item;
mod tree;
mod walk;

use std::error::Error;
use std::path::Path;

use tree::Tree;

/// The public items of the crate with its sources in a folder, one declaration per line.
///
/// # Errors
/// A file cannot be read, or is not Rust.
pub fn list(source: &Path) -> Result<String, Box<dyn Error>> {
    let found = walk::public(&Tree::read(source)?);
    Ok(found
        .into_values()
        .flat_map(|it| [it, "\n".to_owned()])
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(files: &[(&str, &str)]) -> Vec<String> {
        let directory = std::env::temp_dir().join(format!(
            "public-items-{}-{}",
            std::process::id(),
            files.len()
        ));
        std::fs::create_dir_all(&directory).unwrap();
        for (path, text) in files {
            std::fs::write(directory.join(path), text).unwrap();
        }
        let list = list(&directory).unwrap();
        std::fs::remove_dir_all(directory).unwrap();
        list.lines().map(str::to_owned).collect()
    }

    #[test]
    fn only_items_that_other_crates_can_name_are_listed() {
        let lines = lines_of(&[
            (
                "lib.rs",
                "mod inner;\npub mod outer { pub const ONE: u8 = 1; pub(crate) fn no() {} }\n\
                 pub use inner::{Shown as Renamed, shown};\n#[cfg(test)]\nmod tests {}\n",
            ),
            (
                "inner.rs",
                "#[non_exhaustive]\n#[derive(Clone)]\npub struct Shown { pub a: u8, b: u8 }\n\
                 pub struct Hidden;\n\
                 impl Shown {\n    /// Docs.\n    pub fn of(\n        a: u8,\n    ) -> Self { todo!() }\n\
                 \x20   fn not(&self) {}\n}\n\
                 impl Default for Shown { fn default() -> Self { todo!() } }\n\
                 pub fn shown() {}\n",
            ),
        ]);
        assert_eq!(
            lines,
            [
                "non_exhaustive struct Renamed",
                "  a: u8",
                "  fn of(a: u8) -> Self",
                "const outer::ONE: u8",
                "fn shown()",
            ]
        );
    }

    #[test]
    fn variants_and_methods_of_traits_are_listed() {
        let lines = lines_of(&[(
            "lib.rs",
            "pub enum Kind { A, B(u8), C { d: u8 } }\n\
             pub trait Named: Send {\n    const N: u8;\n    fn name(&self) -> &str;\n}\n\
             pub struct Pair(pub u8, u8);\n",
        )]);
        assert_eq!(
            lines,
            [
                "enum Kind",
                "  A",
                "  B(u8)",
                "  C { d: u8 }",
                "trait Named: Send",
                "  const N: u8",
                "  fn name(&self) -> &str",
                "struct Pair",
                "  0: u8",
            ]
        );
    }
}
