//! Prints the apiVersion and kind of every object that is served without a
//! CustomResourceDefinition or posted to a subresource, one per line. `cargo xtask gen`
//! generates the schemas and the protobuf table from this list.

use std::collections::BTreeSet;

use kubemu_apiserver::{Resource, Subresource, builtin_kinds};

fn main() {
    let mut lines = BTreeSet::new();
    for resource in builtin_kinds().iter().map(|it| it.resource()) {
        lines.insert(format!("{} {}", resource.api_version(), resource.kind));
        // The options of a connection subresource are query parameters.
        let written = resource
            .subresources
            .iter()
            .filter(|it| !it.is_connection());
        let posted = written.filter_map(Subresource::kind);
        lines.extend(posted.map(|(group, version, kind)| {
            let posted = Resource::new(group, version, kind, "");
            format!("{} {kind}", posted.api_version())
        }));
    }
    for line in lines {
        println!("{line}");
    }
}
