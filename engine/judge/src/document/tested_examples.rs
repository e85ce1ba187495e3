//! The examples that tests use.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use serde_json::Value;

use super::read::{Entries, Example, Form, flag, of_text, of_value};

/// Tests whose string literals are manifests or lists of plugins.
const TESTS: [&str; 4] = [
    LISTS,
    "crates/apiserver/tests/server/plugins.rs",
    "crates/apiserver/tests/server/removed_plugins.rs",
    "crates/apiserver/tests/server/webhooks.rs",
];
/// The test that starts servers with the lists of plugins.
const LISTS: &str = "crates/apiserver/tests/server/document.rs";
/// Requests that are sent to a real server and to the embedded one.
const CORPUS: &str = "judge/record/corpus/documents";
/// A page whose examples are run.
const PAGE: &str = "docs/admission-plugins.md";

/// What tests use: the entries of every manifest, and the lists of plugins.
#[derive(Default)]
pub(super) struct TestedExamples {
    manifests: Vec<Entries>,
    lists: BTreeSet<String>,
}

impl TestedExamples {
    /// Whether a test uses an example, possibly with more fields.
    pub(super) fn has(&self, example: &Example) -> bool {
        match example.form {
            Form::Block => self.manifests.iter().any(|it| {
                example
                    .entries
                    .iter()
                    .all(|(entry, n)| it.get(entry) >= Some(n))
            }),
            Form::Command => self.lists.contains(flag(&example.text)),
        }
    }

    fn add_text(&mut self, text: &str) {
        self.manifests.push(of_text(text));
    }

    fn add_literals(&mut self, tokens: TokenStream, is_list: bool) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.add_literals(group.stream(), is_list),
                TokenTree::Literal(literal) => {
                    if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string())
                    {
                        self.add_text(&text.value());
                        if is_list {
                            self.lists.insert(text.value());
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds every object of a request that is kept as YAML.
    fn add_bodies(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let mut entries = Entries::new();
                of_value(value, &mut entries);
                self.manifests.push(entries);
                fields.values().for_each(|it| self.add_bodies(it));
            }
            Value::Array(items) => items.iter().for_each(|it| self.add_bodies(it)),
            _ => {}
        }
    }
}

pub(super) fn read(root: &Path, more: &[&str]) -> Result<TestedExamples, Box<dyn Error>> {
    let mut tested_examples = TestedExamples::default();
    let tests = TESTS.map(|path| (path, root.join(path)));
    let more = more.iter().map(|path| (*path, PathBuf::from(path)));
    for (path, file) in tests.into_iter().chain(more) {
        let source =
            fs::read_to_string(file).map_err(|error| format!("{path}: {error}"))?;
        let tokens = source.parse().map_err(|error| format!("{path}: {error}"))?;
        tested_examples.add_literals(tokens, path == LISTS);
    }
    for entry in fs::read_dir(root.join(CORPUS))? {
        let text = fs::read_to_string(entry?.path())?;
        let steps: Value = serde_saphyr::from_str(&text)?;
        // The whole file is not an example.
        for part in steps.as_object().into_iter().flat_map(|it| it.values()) {
            for step in part.as_array().into_iter().flatten() {
                tested_examples.add_bodies(&step["body"]);
            }
        }
    }
    let page = fs::read_to_string(root.join(PAGE))?;
    for block in page.split("```").skip(1).step_by(2) {
        let text = block.split_once('\n').map_or("", |(_, text)| text);
        for manifest in text.split("---\n") {
            tested_examples.add_text(manifest);
        }
    }
    Ok(tested_examples)
}
