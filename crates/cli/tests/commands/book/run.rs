//! Runs the commands of the book and compares their output with its pages.
//!
//! A page selects the server with a comment: after `<!-- run -->` its blocks of `console` are run
//! without a cluster, after `<!-- run: 5spot dev ... -->` or `<!-- run: 5spot apiserver ... -->` on
//! such a server, which is started for them. A line that begins with `$ ` is a command for `sh`,
//! run in the root of the source tree. The lines after it are its output; a line `…` represents any
//! number of lines.
//!
//! Pages are plain Markdown, without directives of mdBook, so that they look the same in the source
//! tree. `trycmd`, which replays terminal sessions, does not support pages that start a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use super::ROOT;
use super::pages::{Book, Page};
use crate::server::Server;

/// Represents any number of lines that are not shown.
const ELLIPSIS: &str = "…";
const BINARY: &str = env!("CARGO_BIN_EXE_5spot");

/// The output of a command, from both streams.
fn printed_by(command: &str, server: Option<&Server>) -> Vec<String> {
    let kubeconfig =
        server.map_or_else(|| PathBuf::from("/nonexistent"), Server::kubeconfig);
    let path = std::env::var("PATH").unwrap_or_default();
    let own = Path::new(BINARY).parent().unwrap();
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("exec 2>&1\n{command}"))
        .current_dir(ROOT)
        .env("PATH", format!("{}:{path}", own.display()))
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    // A suffix that newer versions of kubectl add.
    let printed = printed.replace("\" deleted from default namespace", "\" deleted");
    printed.trim_end().lines().map(str::to_owned).collect()
}

/// Whether the shown lines equal the printed ones, except at gaps.
fn shows(shown: &[&str], printed: &[String]) -> bool {
    let Some((first, rest)) = shown.split_first() else {
        return printed.is_empty();
    };
    if *first == ELLIPSIS {
        return (0..=printed.len()).any(|skipped| shows(rest, &printed[skipped..]));
    }
    printed
        .split_first()
        .is_some_and(|(line, others)| line == first && shows(rest, others))
}

/// A page with the output of its commands.
struct Run {
    text: String,
    commands: usize,
}

fn run(page: &Page) -> Run {
    let mut result = Run {
        text: String::new(),
        commands: 0,
    };
    let mut server = None;
    let mut is_run = false;
    let mut lines = page.text.lines().peekable();
    while let Some(line) = lines.next() {
        result.add(line);
        if let Some(words) = line.strip_prefix("<!-- run") {
            let words = words.trim_start_matches(':').trim_end_matches("-->").trim();
            drop(server.take());
            server = Server::named(words);
        }
        if line.starts_with("```") {
            is_run = line == "```console";
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| is_run) else {
            continue;
        };
        let mut command = command.to_owned();
        while command.ends_with('\\') {
            let more = lines.next().unwrap_or_default();
            result.add(more);
            command = format!("{command}\n{more}");
        }
        let mut shown = Vec::new();
        let is_shown = |next: &&str| !next.starts_with("```") && !next.starts_with("$ ");
        while let Some(line) = lines.next_if(is_shown) {
            shown.push(line);
        }
        let printed = printed_by(&command, server.as_ref());
        if shows(&shown, &printed) {
            result.add_all(shown);
        } else {
            result.add_all(printed.iter().map(String::as_str));
        }
        result.commands += 1;
    }
    result
}

impl Run {
    fn add(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn add_all<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        for line in lines {
            self.add(line);
        }
    }
}

/// The first line in which a page differs from the output, and that line of the output.
fn first_difference(page: &str, output: &str) -> Option<(String, String)> {
    let line = |text: &str, number| text.lines().nth(number).unwrap_or("").to_owned();
    let lines = page.lines().count().max(output.lines().count());
    let both = (0..lines).map(|number| (line(page, number), line(output, number)));
    both.into_iter().find(|(shown, printed)| shown != printed)
}

/// Whether kubectl is installed. `REQUIRE_KUBECTL=1` assumes that it is.
fn has_kubectl() -> bool {
    let is_required = std::env::var("REQUIRE_KUBECTL").as_deref() == Ok("1");
    let mut command = Command::new("kubectl");
    command.arg("options").stdout(Stdio::null());
    is_required || command.status().is_ok()
}

/// With `UPDATE_PAGES=1` the pages are updated with the output of the commands.
#[test]
fn the_commands_of_the_book_print_the_shown_output() {
    let book = Book::open();
    let has_kubectl = has_kubectl();
    let is_run = |page: &&Page| {
        page.text.contains("<!-- run -->")
            || has_kubectl && page.text.contains("<!-- run: ")
    };
    let pages: Vec<&Page> = book.pages.iter().filter(is_run).collect();
    // The pages run in parallel, because most of the time they wait for their servers.
    let runs: Vec<Run> = thread::scope(|scope| {
        let threads: Vec<_> =
            pages.iter().map(|page| scope.spawn(|| run(page))).collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let commands: usize = runs.iter().map(|it| it.commands).sum();
    println!("{commands} commands of {} pages were run", pages.len());
    if !has_kubectl {
        println!("there is no kubectl: the pages that need one were not run");
    }
    for (page, run) in pages.iter().zip(runs) {
        if std::env::var_os("UPDATE_PAGES").is_some() {
            fs::write(&page.path, run.text).unwrap();
        } else {
            let different = first_difference(&page.text, &run.text);
            assert_eq!(different, None, "{}", page.path.display());
        }
    }
}

/// Every page with a `console` block has a comment that selects how it is run.
#[test]
fn a_page_with_a_console_block_selects_how_it_is_run() {
    for page in &Book::open().pages {
        let is_shown = page.text.contains("\n```console\n");
        let is_run = page.text.contains("<!-- run");
        assert!(
            !is_shown || is_run || page.is_generated() || page.is("how-to/admission.md"),
            "{}: write `sh`, or how it is run",
            page.path.display()
        );
    }
}
