//! The page about troubleshooting knows every reason.

use fivespot_api::condition::Reason;

use super::book::Book;

#[test]
fn every_reason_of_a_condition_has_a_row_about_what_to_do() {
    let book = Book::open();
    let page = book.pages.iter().find(|it| it.is("troubleshooting.md"));
    let (_, table) = page.unwrap().text.split_once("## Reasons").unwrap();
    let rows = table.lines().filter_map(|line| {
        let (reason, _) = line.strip_prefix("| `")?.split_once("` |")?;
        Some(reason)
    });
    let mut reasons: Vec<_> = Reason::MEANINGS.iter().map(|it| it.0).collect();
    reasons.sort_unstable();
    assert_eq!(rows.collect::<Vec<_>>(), reasons);
}
