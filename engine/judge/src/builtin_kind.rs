//! The list of built-in kinds of the embedded API server. The generators of their schemas and of the
//! protobuf table read it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::PathBuf;

use kubemu_apiserver::{Resource, Subresource, builtin_kinds};

use crate::target;

/// Writes the list into the target folder: the apiVersion and kind of every object that is served
/// without a CustomResourceDefinition or posted to a subresource, one per line. Returns its path.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn list() -> io::Result<PathBuf> {
    let mut kinds = BTreeSet::new();
    for resource in builtin_kinds().iter().map(|it| it.resource()) {
        kinds.insert(format!("{} {}", resource.api_version(), resource.kind));
        // The options of a connection subresource are query parameters.
        let written = resource
            .subresources
            .iter()
            .filter(|it| !it.is_connection());
        let posted = written.filter_map(Subresource::kind);
        kinds.extend(posted.map(|(group, version, kind)| {
            let posted = Resource::new(group, version, kind, "");
            format!("{} {kind}", posted.api_version())
        }));
    }
    let mut text = String::new();
    for kind in kinds {
        let _ = writeln!(text, "{kind}");
    }
    let path = target().join("builtin-kinds.txt");
    // The file is written only if the list has changed, so that nothing is rebuilt otherwise.
    if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
        fs::write(&path, text)?;
    }
    Ok(path)
}
