use super::{Stat, parse_stat};

#[test]
fn a_name_with_parentheses_and_line_breaks_is_parsed() {
    let numbers = "S 1 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4242 1 2";
    for name in ["sh", "a b", ") S 9 (", "x\n)", "(((", ""] {
        let line = format!("17 ({name}) {numbers}");
        assert_eq!(
            parse_stat(line.as_bytes()),
            Some(Stat {
                is_kernel_thread: false,
                has_ended: false,
                is_exiting: false,
                started: 4242
            }),
            "{name:?}"
        );
    }
}

#[test]
fn kernel_threads_and_ended_processes_are_recognised() {
    let line = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0";
    assert!(parse_stat(line.as_bytes()).unwrap().is_kernel_thread);
    let line = "9 (x) Z 0 0 0 0 -1 4194564 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0";
    let stat = parse_stat(line.as_bytes()).unwrap();
    assert!(stat.has_ended && stat.is_exiting);
}

#[test]
fn a_truncated_line_is_rejected() {
    let whole = "2 (k) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1";
    assert!(parse_stat(whole.as_bytes()).is_some());
    for length in 0..whole.len() {
        assert_eq!(parse_stat(&whole.as_bytes()[..length]), None, "{length}");
    }
    assert_eq!(parse_stat(b"2 (k) S \xff"), None);
}
