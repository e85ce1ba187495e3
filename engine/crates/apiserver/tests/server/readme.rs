//! The README lists the kinds and plugins.

use std::fmt::Write as _;

use kubemu_apiserver::{KubeVersion, Subresource, builtin_kinds, builtin_plugins};

const README: &str = include_str!("../../README.md");

#[test]
fn the_readme_lists_every_kind_that_is_served() {
    let mut table =
        "| apiVersion | kind | scope | subresources |\n|---|---|---|---|\n".to_owned();
    for resource in builtin_kinds().iter().map(|it| it.resource()) {
        let scope = if resource.namespaced {
            "namespace"
        } else {
            "cluster"
        };
        let below = resource.subresources.iter().map(Subresource::name);
        let below = below.collect::<Vec<_>>().join(", ");
        let (version, kind) = (resource.api_version(), resource.kind);
        writeln!(table, "| `{version}` | {kind} | {scope} | {below} |").unwrap();
    }
    let table = table.replace("|  |", "| |");
    assert!(
        README.contains(&table),
        "README.md lacks this table:\n{table}"
    );
}

#[test]
fn the_readme_lists_every_plugin_in_order() {
    let mut table = "| plugin | by default |\n|---|---|\n".to_owned();
    for plugin in builtin_plugins() {
        if plugin.removal().is_some() {
            continue;
        }
        let on = plugin.is_on_by_default(KubeVersion::default());
        let on = if on { "on" } else { "off" };
        writeln!(table, "| {} | {on} |", plugin.name()).unwrap();
    }
    assert!(
        README.contains(&table),
        "README.md lacks this table:\n{table}"
    );
}
