//! Pages that people write, with parts that are generated.

use std::error::Error;
use std::fs;
use std::path::Path;

/// The page at a path below the root, with these texts between the two lines of their marks.
///
/// # Errors
/// The page cannot be read, or has no place for a text.
pub(crate) fn filled<const N: usize>(
    root: &Path,
    path: &str,
    parts: [(&str, String); N],
) -> Result<String, Box<dyn Error>> {
    let mut page = fs::read_to_string(root.join(path))?;
    for (mark, text) in parts {
        let begin = format!("<!-- {mark} -->\n");
        let end = format!("<!-- end of {mark} -->\n");
        let places = page.split_once(&begin).and_then(|(before, rest)| {
            let (_, after) = rest.split_once(&end)?;
            Some((before, after))
        });
        let (before, after) = places.ok_or_else(|| format!("{path} has no {begin}"))?;
        page = format!("{before}{begin}{text}{end}{after}");
    }
    Ok(page)
}
