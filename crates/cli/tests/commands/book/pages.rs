//! The books, `docs/` for users, `internals/` for those who change 5-Spot and `engine/docs/` for those who
//! use the engine alone: their pages, their links, and the files and flags in them.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::ROOT;

/// A page.
pub(crate) struct Page {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// The rendered pages of a book, which its `SUMMARY.md` lists.
pub(crate) struct Book {
    pub(crate) pages: Vec<Page>,
}

fn docs() -> PathBuf {
    Path::new(ROOT).join("docs")
}

fn internals() -> PathBuf {
    Path::new(ROOT).join("internals")
}

fn engine() -> PathBuf {
    Path::new(ROOT).join("engine/docs")
}

impl Book {
    /// The book for users.
    pub(crate) fn open() -> Self {
        Self::open_in(&docs())
    }

    fn open_in(folder: &Path) -> Self {
        let summary = fs::read_to_string(folder.join("SUMMARY.md")).unwrap();
        let pages = links(&summary)
            .iter()
            .map(|link| Page::open(folder.join(link)))
            .collect();
        Self { pages }
    }

    /// All books.
    fn all() -> [Self; 3] {
        [docs(), internals(), engine()].map(|folder| Self::open_in(&folder))
    }

    fn page(&self, path: &Path) -> Option<&Page> {
        let path = fs::canonicalize(path).ok()?;
        let is_it = |page: &&Page| fs::canonicalize(&page.path).unwrap() == path;
        self.pages.iter().find(is_it)
    }
}

impl Page {
    fn open(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { path, text }
    }

    /// Whether this is the page with that path below `docs/`.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.path == docs().join(name)
    }

    /// Whether the page, one for users, is generated. Commands of such a page need a source tree,
    /// minutes, or a terminal.
    pub(crate) fn is_generated(&self) -> bool {
        let Ok(name) = self.path.strip_prefix(docs()) else {
            return false;
        };
        name.components().count() == 1 && self.text.contains("cargo xtask")
            || name.starts_with("reference")
    }

    /// The lines of its fenced blocks in one of `languages`. A command with a continuation line is
    /// one line.
    fn lines_in(&self, languages: &[&str]) -> Vec<String> {
        let mut is_in = false;
        let mut found = Vec::new();
        for line in self.text.replace("\\\n", " ").lines() {
            let line = line.trim_start();
            if let Some(language) = line.strip_prefix("```") {
                is_in = languages.contains(&language);
            } else if is_in {
                found.push(line.to_owned());
            }
        }
        found
    }

    /// The anchors of its headings, as mdBook and GitHub generate them.
    fn anchors(&self) -> BTreeSet<String> {
        let headings = prose(&self.text)
            .into_iter()
            .filter(|line| line.starts_with('#'));
        let anchor = |heading: &str| {
            let words = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = words.chars().filter_map(|letter| match letter {
                ' ' => Some('-'),
                '-' | '_' => Some(letter),
                _ => letter.is_alphanumeric().then_some(letter),
            });
            kept.collect()
        };
        headings.map(anchor).collect()
    }
}

/// The lines outside fenced blocks.
fn prose(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let is_prose = |line: &&str| {
        is_code ^= line.trim_start().starts_with("```");
        !is_code
    };
    text.lines().filter(is_prose).collect()
}

/// The targets of the links of a text, except in code.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text).join("\n");
    let texts = prose.split('`').step_by(2).collect::<Vec<_>>().join("``");
    let mut rest = texts.as_str();
    let mut found = Vec::new();
    while let Some((_, after)) = rest.split_once("](") {
        let Some((target, after)) = after.split_once(')') else {
            break;
        };
        found.push(target.to_owned());
        rest = after;
    }
    found
}

#[test]
fn every_link_of_a_book_leads_to_a_page_of_the_same_book() {
    let mut broken = Vec::new();
    let books = Book::all();
    let pages = books
        .iter()
        .flat_map(|book| book.pages.iter().map(move |page| (book, page)));
    for (book, page) in pages {
        for link in links(&page.text) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let is_picture = [".svg", ".png"].iter().any(|it| file.ends_with(it));
            if is_picture && page.path.with_file_name(file).exists() {
                continue;
            }
            let target = match file {
                "" => Some(page),
                file if file.contains("://") => continue,
                file => book.page(&page.path.with_file_name(file)),
            };
            let is_there = |it: &Page| anchor.is_empty() || it.anchors().contains(anchor);
            if !target.is_some_and(is_there) {
                broken.push(format!("{}: {link}", page.path.display()));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

#[test]
fn every_link_of_the_pages_beside_the_book_leads_to_a_file() {
    for name in [
        "README",
        "ARCHITECTURE",
        "CONTRIBUTING",
        "SECURITY",
        "CHANGELOG",
    ] {
        let text = fs::read_to_string(format!("{ROOT}/{name}.md")).unwrap();
        for link in links(&text) {
            let (file, _) = link.split_once('#').unwrap_or((&link, ""));
            let path = Path::new(ROOT).join(file);
            assert!(file.contains("://") || path.exists(), "{name}.md: {link}");
        }
    }
}

fn pages_below(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages_below(&path, found);
        } else if path.extension().is_some_and(|it| it == "md") {
            found.insert(path);
        }
    }
}

#[test]
fn the_summary_lists_every_page() {
    let mut pages = BTreeSet::new();
    for folder in [docs(), internals(), engine()] {
        pages_below(&folder, &mut pages);
        pages.remove(&folder.join("SUMMARY.md"));
    }
    let decisions = internals().join("decisions");
    pages.retain(|page| page.parent() != Some(&decisions));
    for page in Book::all().iter().flat_map(|book| &book.pages) {
        pages.remove(&page.path);
    }
    assert_eq!(pages, BTreeSet::new(), "add them to a SUMMARY.md");
}

/// Compares the end of the summary with the pages. With `UPDATE_PAGES=1` it is updated.
#[test]
fn the_summary_ends_with_the_decisions_and_their_titles() {
    let mut pages = BTreeSet::new();
    pages_below(&internals().join("decisions"), &mut pages);
    pages.remove(&internals().join("decisions/README.md"));
    let item = |page: &PathBuf| {
        let text = fs::read_to_string(page).unwrap();
        let title = text.lines().next().unwrap().trim_start_matches("# ");
        let file = page.file_name().unwrap().display();
        format!("    - [{title}](decisions/{file})\n")
    };
    let list: String = pages.iter().map(item).collect();
    let path = internals().join("SUMMARY.md");
    let summary = fs::read_to_string(&path).unwrap();
    let start = summary.find("    - ").unwrap_or(summary.len());
    if std::env::var_os("UPDATE_PAGES").is_some() {
        fs::write(path, format!("{}{list}", &summary[..start])).unwrap();
    } else {
        assert_eq!(summary[start..], list, "run this with UPDATE_PAGES=1");
    }
}

/// Whether `5spot validate` accepts a manifest.
fn is_valid(manifest: &str) -> bool {
    let mut process = Command::new(env!("CARGO_BIN_EXE_5spot"))
        .args(["validate", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = process.stdin.take().unwrap();
    input.write_all(manifest.as_bytes()).unwrap();
    drop(input);
    process.wait().unwrap().success()
}

#[test]
fn every_manifest_of_a_book_is_valid() {
    let readme = Page::open(Path::new(ROOT).join("README.md"));
    let mut found = 0;
    let pages = Book::all().into_iter().flat_map(|book| book.pages);
    for page in pages.chain([readme]) {
        for block in page.text.split("\n```yaml\n").skip(1) {
            let (manifest, _) = block.split_once("\n```").unwrap();
            if manifest.starts_with("apiVersion: 5spot.finos.org/") {
                assert!(is_valid(manifest), "{}: {manifest}", page.path.display());
                found += 1;
            }
        }
    }
    assert!(found > 1);
}

/// The folders whose files a page for users may name.
const FOLDERS_FOR_USERS: [&str; 3] = ["deploy/", "examples/", "internals/"];

/// The folders whose files a page about a change may name.
const FOLDERS: [&str; 7] = [
    "crates/",
    "deploy/",
    "docs/",
    "e2e/",
    "examples/",
    "internals/",
    "xtask/",
];

/// The paths in a text that begin with one of `folders`, except patterns.
fn paths<'a>(text: &'a str, folders: &[&str]) -> Vec<&'a str> {
    let is_end = |letter: char| letter.is_whitespace() || "`\"'(),:;|".contains(letter);
    let words = text.split(is_end).map(|word| word.trim_end_matches('.'));
    let is_path = |word: &&str| {
        folders.iter().any(|folder| word.starts_with(folder))
            && !word.contains(['*', '<', '{', '…'])
    };
    words.filter(is_path).collect()
}

#[test]
fn every_file_that_a_book_names_is_there() {
    let for_users = Book::open().pages.into_iter();
    let for_users = for_users
        .filter(|page| !page.is_generated())
        .map(|page| (page, &FOLDERS_FOR_USERS[..]));
    let of_changes = Book::open_in(&internals()).pages.into_iter();
    let of_changes = of_changes
        .filter(|page| page.text.starts_with("# To "))
        .map(|page| (page, &FOLDERS[..]));
    for (page, folders) in for_users.chain(of_changes) {
        for path in paths(&page.text, folders) {
            let is_there = Path::new(ROOT).join(path).exists();
            assert!(is_there, "{}: {path}", page.path.display());
        }
    }
}

#[test]
fn every_file_that_the_architecture_names_is_there() {
    let text = fs::read_to_string(format!("{ROOT}/ARCHITECTURE.md")).unwrap();
    let workspaces = [format!("{ROOT}/crates"), format!("{ROOT}/engine/crates")];
    let mut folders: Vec<String> = workspaces
        .iter()
        .flat_map(|crates| fs::read_dir(crates).unwrap())
        .map(|entry| format!("{}/src", entry.unwrap().file_name().display()))
        .collect();
    let others = ["docs/", "internals/", "e2e/", "deploy/", "examples/"];
    folders.extend(others.map(str::to_owned));
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    for path in paths(&text, &folders) {
        let is_there = std::iter::once(ROOT)
            .chain(workspaces.iter().map(String::as_str))
            .any(|root| Path::new(root).join(path).exists());
        assert!(is_there, "ARCHITECTURE.md: {path}");
    }
}

/// The calls of `5spot` in a shell line, without what follows them.
fn calls(line: &str) -> impl Iterator<Item = &str> {
    let commands = line.trim_start_matches("$ ").split(" | ");
    let ends = [" > ", " && ", " &", "  #"];
    let call = move |command| {
        let end =
            |command: &'_ str, end: &str| command.find(end).unwrap_or(command.len());
        let command: &str = command;
        let length = ends.iter().map(|it| end(command, it)).min().unwrap_or(0);
        command[..length].trim()
    };
    let own = |command: &&str| {
        let command = command.strip_prefix("kubectl ").unwrap_or(command);
        command.starts_with("5spot ")
    };
    commands.map(call).filter(own)
}

/// Appends `--help` to each call: the flags before it are parsed, and the command is not run.
#[test]
fn every_call_of_5spot_in_the_book_has_flags_that_exist() {
    let own = Path::new(env!("CARGO_BIN_EXE_5spot")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut seen = BTreeSet::new();
    let readme = Page::open(Path::new(ROOT).join("README.md"));
    let pages = Book::open().pages.into_iter().chain([readme]);
    for page in pages.filter(|it| !it.is_generated()) {
        for line in page.lines_in(&["sh", "console"]) {
            for call in calls(&line) {
                let call = call.strip_prefix("kubectl ").unwrap_or(call).to_owned();
                if !seen.insert(call.clone()) {
                    continue;
                }
                let output = Command::new("sh")
                    .args(["-c", &format!("{call} --help")])
                    .env("PATH", format!("{}:{path}", own.display()))
                    .output()
                    .unwrap();
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(
                    output.status.success(),
                    "{}: {call}: {error}",
                    page.path.display()
                );
            }
        }
    }
    assert!(seen.len() > 40, "{seen:?}");
}
