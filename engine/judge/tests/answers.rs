//! The embedded server's responses are equal to a real server's, word for word.

use std::fs;

use kubemu_judge::record::{agreement, difference, folder};

/// How the compared files are generated.
const REMEDY: &str = "`cargo judge agreement` measures again";

#[tokio::test]
async fn every_answer_is_a_real_servers_or_differs_on_purpose() {
    let differences = difference::read(&folder().join("differences.yaml")).unwrap();
    let measured = agreement::measure(&differences).await.unwrap();
    assert!(
        measured.unexpected.is_empty(),
        "{}",
        measured.unexpected.join("\n")
    );
    assert_eq!(
        measured.idle(&differences),
        [""; 0],
        "listed differences that do not exist; remove them from the list"
    );
    let kept = fs::read_to_string(agreement::path(&folder())).unwrap();
    let measured = agreement::text(&measured.summary(&differences));
    assert_eq!(kept, measured, "the numbers are out of date; {REMEDY}");
}
