use super::{By, Match, Names, Patterns};

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
fn a_whole_name_matches_comm_or_the_program_of_the_first_argument_and_nothing_else() {
    let rows: &[(&[u8], &[u8], Option<By>)] = &[
        (b"steam\n", b"/usr/games/steam\0", Some(By::Comm)),
        (b"steam\n", b"", Some(By::Comm)),
        (b"bash\n", b"/opt/steam/steam\0", Some(By::Program)),
        (b"bash\n", b"steam\0", Some(By::Program)),
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
fn a_name_beyond_fifteen_bytes_is_known_by_its_first_fifteen() {
    let long = "a-rather-long-program-name";
    let rows: &[(&[u8], bool)] = &[
        // Started as itself, as a script, as a script whose interpreter has an option.
        (b"/usr/bin/a-rather-long-program-name\0", true),
        (b"/bin/sh\0/usr/bin/a-rather-long-program-name\0-v\0", true),
        (b"/usr/bin/env\0-S\0./a-rather-long-program-name\0", true),
        // Another program whose name begins alike.
        (b"/usr/bin/a-rather-long-program\0", false),
        (b"/bin/sh\0/usr/bin/a-rather-long-pause\0", false),
        // The arguments say nothing: the kernel's fifteen bytes decide.
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
fn a_name_that_is_cut_short_by_the_pattern_and_not_by_the_kernel_does_not_match() {
    let names = Names::new(b"a-rather\n", b"");
    assert_eq!(commands(&["a-rather-long-program-name"]).find(&names), None);
    // Fifteen bytes that are the whole pattern, of a program that is called more.
    let names = Names::new(
        b"a-rather-long-p\n",
        b"/usr/bin/a-rather-long-program-name\0",
    );
    assert_eq!(commands(&["a-rather-long-p"]).find(&names), None);
    let names = Names::new(b"a-rather-long-p\n", b"/usr/bin/a-rather-long-p\0");
    assert!(commands(&["a-rather-long-p"]).find(&names).is_some());
}

#[test]
fn a_part_of_a_command_line_reaches_over_arguments_that_are_joined_by_spaces() {
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
fn arguments_that_are_no_text_are_compared_byte_by_byte() {
    let names = Names::new(b"\xff\xfe\n", b"/bin/caf\xe9\0\xff steam \xfe\0");
    assert_eq!(
        substrings(&[" steam "]).find(&names),
        Some(Match {
            pattern: " steam ",
            by: By::CommandLine
        })
    );
    assert_eq!(substrings(&["café"]).find(&names), None);
    let names = Names::new(b"x\n", "/bin/café\0".as_bytes());
    assert_eq!(
        commands(&["café"]).find(&names).map(|found| found.by),
        Some(By::Program)
    );
    // A name that the kernel cut inside a letter.
    let names = Names::new(&"schöner-spielé".as_bytes()[..15], b"");
    assert!(commands(&["schöner-spielén"]).find(&names).is_some());
}

#[test]
fn whole_names_come_before_parts_and_each_in_the_order_of_its_list() {
    let both = || vec!["b".to_owned(), "a".to_owned()];
    let patterns = Patterns::new(both(), both());
    let names = Names::new(b"a\n", b"/bin/a\0b\0");
    assert_eq!(
        patterns.find(&names),
        Some(Match {
            pattern: "a",
            by: By::Comm
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
fn a_process_is_shown_without_its_arguments_and_without_control_characters() {
    for (names, shown) in [
        (Names::new(b"a\n", b"/bin/a\0--password=b\0"), "a"),
        (Names::new(b"java\n", b"/opt/idea\0x\0"), "java (idea)"),
        (Names::new(b"kworker/0:1\n", b""), "kworker/0:1"),
        (Names::new(b"a\x1b[31m\nb\n", b""), "a\\u{1b}[31m\\nb"),
    ] {
        assert_eq!(names.to_string(), shown);
    }
}
