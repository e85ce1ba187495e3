//! Documentation pages whose commands are run.

use std::path::{Path, PathBuf};

/// A page with blocks of `console`: a line that starts with `$ ` is a command, the lines after
/// it in the block are its output.
#[derive(Debug)]
pub struct Page {
    path: PathBuf,
    text: String,
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

#[expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a missing page fails the test"
)]
impl Page {
    /// Compares the page of that name below `docs/` with `text`. With `UPDATE_PAGES=1`, writes
    /// the page instead.
    ///
    /// # Panics
    /// If the page differs.
    pub fn compare_with_output(name: &str, text: &str) {
        let path = docs().join(name);
        if std::env::var_os("UPDATE_PAGES").is_some() {
            std::fs::write(path, text).expect("the page can be written");
        } else {
            let page = std::fs::read_to_string(path).expect("the page");
            assert_eq!(text, page, "{name} is not up to date; set UPDATE_PAGES=1");
        }
    }

    /// The page of that name below `docs/`.
    pub fn open(name: &str) -> Self {
        let path = docs().join(name);
        let text = std::fs::read_to_string(&path).expect("the page");
        Self { path, text }
    }

    /// Every command, without its `$ `.
    pub fn commands(&self) -> Vec<&str> {
        let lines = self.text.lines();
        lines.filter_map(|line| line.strip_prefix("$ ")).collect()
    }

    /// Runs the commands of `program` in order, given the arguments after it, and compares
    /// their output with the page. With `UPDATE_PAGES=1`, writes the output to the page
    /// instead.
    ///
    /// # Panics
    /// If the page differs, or has no command of the program.
    pub async fn run(&self, program: &str, run: impl AsyncFn(&str) -> String) {
        let start = format!("$ {program} ");
        let mut printed_page = String::new();
        // Whether the lines of a block are the output of a command that was run.
        let mut is_replaced = false;
        let mut commands = 0;
        for line in self.text.lines() {
            if line.starts_with("```") || line.starts_with("$ ") {
                is_replaced = false;
            }
            if is_replaced {
                continue;
            }
            printed_page.push_str(line);
            printed_page.push('\n');
            if let Some(words) = line.strip_prefix(&start) {
                let printed = run(words).await;
                if !printed.is_empty() {
                    printed_page.push_str(printed.trim_end());
                    printed_page.push('\n');
                }
                is_replaced = true;
                commands += 1;
            }
        }
        assert!(commands > 0, "no command of {program}");
        if std::env::var_os("UPDATE_PAGES").is_some() {
            std::fs::write(&self.path, printed_page).expect("the page can be written");
        } else {
            assert_eq!(
                printed_page,
                self.text,
                "{} differs from the output",
                self.path.display()
            );
        }
    }
}
