use super::{Match, Names, Patterns};

fn commands(words: &[&str]) -> Patterns {
    Patterns::new(
        words.iter().map(|word| (*word).to_owned()).collect(),
        vec![],
    )
}

fn substrings(words: &[&str]) -> Patterns {
    Patterns::new(
        vec![],
        words.iter().map(|word| (*word).to_owned()).collect(),
    )
}

#[test]
fn a_command_matches_only_comm_or_the_program_in_the_first_argument() {
    let rows: &[(&[u8], &[u8], Option<&str>)] = &[
        (b"steam\n", b"/usr/games/steam\0", Some("comm")),
        (b"steam\n", b"", Some("comm")),
        (b"bash\n", b"/opt/steam/steam\0", Some("argv[0]")),
        (b"bash\n", b"steam\0", Some("argv[0]")),
        (b"bash\n", b"bash\0/opt/steam/steam\0", None),
        (b"steamy\n", b"/usr/games/steamy\0", None),
        (b"stea\n", b"/usr/games/stea\0", None),
        (b"Steam\n", b"/usr/games/Steam\0", None),
        (b"bash\n", b"/opt/steam/\0", None),
        (b"\n", b"", None),
        (b"", b"", None),
    ];
    for (comm, cmdline, by) in rows {
        let names = Names::new(comm, cmdline);
        let patterns = commands(&["steam"]);
        let found = patterns.find(&names).map(|found| found.by);
        assert_eq!(found, *by, "{names}");
    }
}

#[test]
fn a_name_over_15_bytes_is_matched_by_its_truncated_comm() {
    let long = "a-rather-long-program-name";
    let rows: &[(&[u8], bool)] = &[
        // Started as itself, as a script, as a script whose interpreter has an option.
        (b"/usr/bin/a-rather-long-program-name\0", true),
        (b"/bin/sh\0/usr/bin/a-rather-long-program-name\0-v\0", true),
        (b"/usr/bin/env\0-S\0./a-rather-long-program-name\0", true),
        // Another program whose name has the same beginning.
        (b"/usr/bin/a-rather-long-program\0", false),
        (b"/bin/sh\0/usr/bin/a-rather-long-pause\0", false),
        // The arguments do not contain the name: the kernel's 15 bytes decide.
        (b"", true),
        (b"worker: idle\0", true),
    ];
    for (cmdline, matches) in rows {
        let names = Names::new(b"a-rather-long-p\n", cmdline);
        assert_eq!(
            commands(&[long]).find(&names).is_some(),
            *matches,
            "{names}"
        );
    }
}

#[test]
fn a_shorter_comm_than_the_pattern_does_not_match() {
    let names = Names::new(b"a-rather\n", b"");
    assert_eq!(commands(&["a-rather-long-program-name"]).find(&names), None);
    // A pattern of 15 bytes, and a program with a longer name.
    let names = Names::new(
        b"a-rather-long-p\n",
        b"/usr/bin/a-rather-long-program-name\0",
    );
    assert_eq!(commands(&["a-rather-long-p"]).find(&names), None);
    let names = Names::new(b"a-rather-long-p\n", b"/usr/bin/a-rather-long-p\0");
    assert!(commands(&["a-rather-long-p"]).find(&names).is_some());
}

#[test]
fn a_substring_may_span_arguments_joined_by_spaces() {
    let names = Names::new(b"java\n", b"java\0-jar\0/opt/idea.jar\0\0\0");
    for (pattern, matches) in [
        ("java -jar", true),
        ("idea.jar", true),
        ("-jar /opt/idea.jar", true),
        ("idea.jar ", false),
        ("IDEA.jar", false),
        ("java  -jar", false),
    ] {
        assert_eq!(
            substrings(&[pattern]).find(&names).is_some(),
            matches,
            "{pattern}"
        );
    }
}

#[test]
fn arguments_that_are_not_utf8_are_compared_as_bytes() {
    let names = Names::new(b"\xff\xfe\n", b"/bin/caf\xe9\0\xff steam \xfe\0");
    assert_eq!(
        substrings(&[" steam "]).find(&names),
        Some(Match {
            pattern: " steam ",
            by: "command line"
        })
    );
    assert_eq!(substrings(&["café"]).find(&names), None);
    let names = Names::new(b"x\n", "/bin/café\0".as_bytes());
    assert_eq!(
        commands(&["café"]).find(&names).map(|found| found.by),
        Some("argv[0]")
    );
    // A name that the kernel truncated within a character.
    let names = Names::new(&"schöner-spielé".as_bytes()[..15], b"");
    assert!(commands(&["schöner-spielén"]).find(&names).is_some());
}

#[test]
fn full_names_are_tried_before_substrings_in_list_order() {
    let both = || vec!["b".to_owned(), "a".to_owned()];
    let patterns = Patterns::new(both(), both());
    let names = Names::new(b"a\n", b"/bin/a\0b\0");
    assert_eq!(
        patterns.find(&names),
        Some(Match {
            pattern: "a",
            by: "comm"
        })
    );
    let names = Names::new(b"c\n", b"/bin/c\0a\0b\0");
    assert_eq!(patterns.find(&names).map(|found| found.pattern), Some("b"));
    assert_eq!(patterns.texts(), ["b", "a"]);
}

#[test]
fn an_empty_pattern_matches_nothing() {
    let patterns = Patterns::new(vec![String::new()], vec![String::new()]);
    assert!(patterns.is_empty());
    assert_eq!(patterns.find(&Names::new(b"a\n", b"a\0")), None);
}

#[test]
fn a_process_is_displayed_without_arguments_and_control_characters() {
    for (names, shown) in [
        (Names::new(b"a\n", b"/bin/a\0--password=b\0"), "a"),
        (Names::new(b"java\n", b"/opt/idea\0x\0"), "java (idea)"),
        (Names::new(b"kworker/0:1\n", b""), "kworker/0:1"),
        (Names::new(b"a\x1b[31m\nb\n", b""), "a\\u{1b}[31m\\nb"),
    ] {
        assert_eq!(names.to_string(), shown);
    }
}
