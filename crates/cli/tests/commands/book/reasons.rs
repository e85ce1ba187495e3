//! Checks that the page about troubleshooting has a row for every reason.

use fivespot_api::condition::{Reason, capacity_reason, schedule_reason};

use super::pages::Book;

#[test]
fn every_reason_of_a_condition_has_a_row_with_a_remedy() {
    let book = Book::open();
    let page = book.pages.iter().find(|it| it.is("troubleshooting.md"));
    let (_, table) = page.unwrap().text.split_once("## Reasons").unwrap();
    let rows = table.lines().filter_map(|line| {
        let (reason, _) = line.strip_prefix("| `")?.split_once("` |")?;
        Some(reason)
    });
    let mut reasons: Vec<_> = Reason::TABLE.iter().map(|it| it.name).collect();
    reasons.sort_unstable();
    assert_eq!(rows.collect::<Vec<_>>(), reasons);
}

/// The links of the table are relative to `docs/`, and `5spot explain` prints them as URLs.
#[test]
fn every_section_that_a_remedy_links_has_its_title() {
    let book = Book::open();
    let of_machines = Reason::TABLE.iter();
    let others = capacity_reason::TABLE.iter().chain(schedule_reason::TABLE);
    for row in of_machines.chain(others) {
        let Some(section) = row.remedy.and_then(|it| it.section) else {
            continue;
        };
        let (file, _) = section.path.split_once('#').unwrap_or((section.path, ""));
        let page = book.pages.iter().find(|it| it.is(file)).unwrap();
        let is_there = |line: &str| line.trim_start_matches('#').trim() == section.title;
        assert!(page.text.lines().any(is_there), "{section:?}");
    }
}
