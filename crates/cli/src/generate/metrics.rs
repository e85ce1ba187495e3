//! The reference page of the metrics.

use fivespot_api::manifest::{GeneratedFile, PAGE_HEADER};

/// The page. Cannot fail.
pub(super) fn page() -> GeneratedFile {
    let page = fivespot_controller::metrics::reference();
    let webhook = fivespot_webhook::metrics::reference();
    GeneratedFile {
        path: "metrics.md".to_owned(),
        text: format!("{PAGE_HEADER}{page}\n{webhook}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::page;

    #[test]
    fn the_page_in_the_source_tree_tells_of_the_metrics_there_are() {
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
        let page = page();
        let found = fs::read_to_string(tree.join(&page.path)).ok();
        let difference = page.difference(found.as_deref());
        let remedy =
            "cargo run -p fivespot-cli --bin 5spot -- generate docs -o docs/reference";
        assert_eq!(difference, None, "run `{remedy}`");
    }
}
