//! The errors for invalid sources are those of Kubernetes 1.36.

use kubemu_cel::{Dialect, Env, Program};

/// Sources with Kubernetes' own errors, without "Syntax error: ".
const ERRORS: &[(&str, &[&str])] = &[
    (
        "a.true",
        &["1:3 mismatched input 'true' expecting IDENTIFIER"],
    ),
    (
        "a.null.b",
        &["1:3 mismatched input 'null' expecting IDENTIFIER"],
    ),
    (
        "f(*a)",
        &[
            "1:3 extraneous input '*' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
        ],
    ),
    ("f(a b)", &["1:5 extraneous input 'b' expecting ')'"]),
    ("f(a,)", &["1:5 mismatched input ')' expecting STARTS"]),
    (
        "f(,a)",
        &[
            "1:3 extraneous input ',' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
        ],
    ),
    ("f(a", &["1:4 missing ')' at '<EOF>'"]),
    ("f((a)", &["1:6 missing ')' at '<EOF>'"]),
    ("(a b)", &["1:4 extraneous input 'b' expecting ')'"]),
    ("((a b))", &["1:5 extraneous input 'b' expecting ')'"]),
    ("[1 2]", &["1:4 extraneous input '2' expecting {']', ','}"]),
    ("[1,,2]", &["1:4 mismatched input ',' expecting ']'"]),
    (
        "[*1]",
        &[
            "1:2 extraneous input '*' expecting {'[', ']', '{', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
        ],
    ),
    ("[1", &["1:3 mismatched input '<EOF>' expecting {']', ','}"]),
    ("{'a' 1}", &["1:6 missing ':' at '1'"]),
    (
        "{'a': 1 2}",
        &["1:9 extraneous input '2' expecting {'}', ','}"],
    ),
    ("{'a'", &["1:5 mismatched input '<EOF>' expecting ':'"]),
    (
        "{*}",
        &[
            "1:2 extraneous input '*' expecting {'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
        ],
    ),
    ("{'a': }", &["1:7 mismatched input '}' expecting STARTS"]),
    ("a.", &["1:3 no viable alternative at input '.'"]),
    ("a.)", &["1:3 no viable alternative at input '.)'"]),
    ("a.(b)", &["1:3 no viable alternative at input '.('"]),
    ("f(a.)", &["1:5 no viable alternative at input '.)'"]),
    ("a..b", &["1:3 no viable alternative at input '..'"]),
    ("a.1", &["1:2 extraneous input '.1' expecting <EOF>"]),
    ("a[1", &["1:4 missing ']' at '<EOF>'"]),
    (
        "a[]",
        &[
            "1:3 mismatched input ']' expecting {'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
        ],
    ),
    ("a[1 2]", &["1:5 extraneous input '2' expecting ']'"]),
    ("a ? b", &["1:6 mismatched input '<EOF>' expecting ':'"]),
    ("a ? b c", &["1:7 missing ':' at 'c'"]),
    (
        "a ? : c",
        &[
            "1:5 extraneous input ':' expecting STARTS",
            "1:8 mismatched input '<EOF>' expecting ':'",
        ],
    ),
    ("a +", &["1:4 mismatched input '<EOF>' expecting STARTS"]),
    ("+ a", &["1:1 extraneous input '+' expecting STARTS"]),
    ("a + * b", &["1:5 extraneous input '*' expecting STARTS"]),
    ("a == == b", &["1:6 extraneous input '==' expecting STARTS"]),
    ("a b", &["1:3 extraneous input 'b' expecting <EOF>"]),
    ("a b c", &["1:3 mismatched input 'b' expecting <EOF>"]),
    ("(", &["1:2 mismatched input '<EOF>' expecting STARTS"]),
    ("()", &["1:2 mismatched input ')' expecting STARTS"]),
    ("a)", &["1:2 extraneous input ')' expecting <EOF>"]),
    ("a) b", &["1:2 mismatched input ')' expecting <EOF>"]),
    (
        "a & b",
        &[
            "1:3 token recognition error at: '& '",
            "1:5 extraneous input 'b' expecting <EOF>",
        ],
    ),
    (
        "a = b",
        &[
            "1:3 token recognition error at: '= '",
            "1:5 extraneous input 'b' expecting <EOF>",
        ],
    ),
    (
        "a | b",
        &[
            "1:3 token recognition error at: '| '",
            "1:5 extraneous input 'b' expecting <EOF>",
        ],
    ),
    ("$a", &["1:1 token recognition error at: '$'"]),
    (
        "a $ b",
        &[
            "1:3 token recognition error at: '$'",
            "1:5 extraneous input 'b' expecting <EOF>",
        ],
    ),
    (
        "'abc",
        &[
            "1:1 token recognition error at: ''abc'",
            "1:5 mismatched input '<EOF>' expecting STARTS",
        ],
    ),
    (
        "\"\\q\"",
        &[
            "1:1 token recognition error at: '\"\\q'",
            "1:4 token recognition error at: '\"'",
            "1:5 mismatched input '<EOF>' expecting STARTS",
        ],
    ),
    ("`a`", &["1:1 mismatched input '`a`' expecting STARTS"]),
    ("a.`b`", &["1:3 unsupported syntax: '`'"]),
    (
        "a.?",
        &[
            "1:4 mismatched input '<EOF>' expecting {IDENTIFIER, ESC_IDENTIFIER}",
            "1:4 unsupported ident kind",
        ],
    ),
    (
        "a.?1",
        &[
            "1:4 mismatched input '1' expecting {IDENTIFIER, ESC_IDENTIFIER}",
            "1:4 unsupported ident kind",
        ],
    ),
    ("a[?", &["1:4 mismatched input '<EOF>' expecting STARTS"]),
    (
        "é",
        &[
            "1:1 token recognition error at: 'é'",
            "1:2 mismatched input '<EOF>' expecting STARTS",
        ],
    ),
    (
        "a é b",
        &[
            "1:3 token recognition error at: 'é'",
            "1:5 extraneous input 'b' expecting <EOF>",
        ],
    ),
    ("f(a))", &["1:5 extraneous input ')' expecting <EOF>"]),
    ("f(a)) b", &["1:5 mismatched input ')' expecting <EOF>"]),
    ("in a", &["1:1 extraneous input 'in' expecting STARTS"]),
    ("a in", &["1:5 mismatched input '<EOF>' expecting STARTS"]),
    ("a in in b", &["1:6 extraneous input 'in' expecting STARTS"]),
    (
        "true false",
        &["1:6 extraneous input 'false' expecting <EOF>"],
    ),
    (
        "f(a;b)",
        &[
            "1:4 token recognition error at: ';'",
            "1:5 extraneous input 'b' expecting ')'",
        ],
    ),
    ("f(a(b) c)", &["1:8 extraneous input 'c' expecting ')'"]),
    (
        "self.a.all(i, )",
        &["1:15 mismatched input ')' expecting STARTS"],
    ),
    (
        "self.a.all(i, i > )",
        &["1:19 mismatched input ')' expecting STARTS"],
    ),
    ("(a == )", &["1:7 mismatched input ')' expecting STARTS"]),
    ("(== a)", &["1:2 extraneous input '==' expecting STARTS"]),
    (
        "a ? (b : c)",
        &[
            "1:8 missing ')' at ':'",
            "1:11 extraneous input ')' expecting <EOF>",
        ],
    ),
    ("[a.b.]", &["1:6 no viable alternative at input '.]'"]),
    ("a.b.[0]", &["1:5 no viable alternative at input '.['"]),
    ("a.b.&& c", &["1:5 no viable alternative at input '.&&'"]),
    ("{a.: 1}", &["1:4 no viable alternative at input '.:'"]),
    ("'a' 'b'", &["1:5 extraneous input ''b'' expecting <EOF>"]),
    ("'a''", &["1:4 token recognition error at: '''"]),
    (
        "'a' + 'b",
        &[
            "1:7 token recognition error at: ''b'",
            "1:9 mismatched input '<EOF>' expecting STARTS",
        ],
    ),
    ("a && ", &["1:6 mismatched input '<EOF>' expecting STARTS"]),
    ("a &&& b", &["1:5 token recognition error at: '& '"]),
    ("a ||| b", &["1:5 token recognition error at: '| '"]),
    (
        "a ?: b",
        &[
            "1:4 extraneous input ':' expecting STARTS",
            "1:7 mismatched input '<EOF>' expecting ':'",
        ],
    ),
    ("((a)", &["1:5 missing ')' at '<EOF>'"]),
    ("(((a)", &["1:6 mismatched input '<EOF>' expecting ')'"]),
    ("f(a, (b", &["1:8 mismatched input '<EOF>' expecting ')'"]),
    ("a[(b]", &["1:5 missing ')' at ']'"]),
    ("[(a]", &["1:4 missing ')' at ']'"]),
    ("{'a': (b}", &["1:9 missing ')' at '}'"]),
];

/// The tokens that may start an expression.
const STARTS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, \
     NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// With one variable only `exists_one` exists.
#[test]
fn exists_one_in_camel_case_takes_two_variables() {
    let env = Env::new(Dialect::default());
    let compile = |source| Program::compile(source, &env).map(|_| ());
    compile("[7].exists_one(i, i == 7)").expect("it is a macro");
    compile("[7].existsOne(i, j, j == 7)").expect("it is a macro");
    let refused = compile("[7].existsOne(i, i == 7)").expect_err("it is not a macro");
    let refused = refused.to_string();
    assert!(
        refused.contains("undeclared reference to 'existsOne'"),
        "{refused}"
    );
}

#[test]
fn syntax_errors_are_reported_as_by_kubernetes() {
    let env = Env::new(Dialect::default());
    for (source, wanted) in ERRORS {
        let errors = Program::compile(source, &env).expect_err(source);
        let found: Vec<String> = errors
            .errors()
            .iter()
            .map(|error| {
                let message = error.message.replace("Syntax error: ", "");
                let message = message.replace(STARTS, "STARTS");
                format!("{}:{} {message}", error.line, error.column)
            })
            .collect();
        assert_eq!(found, *wanted, "{source}");
    }
}

#[test]
fn a_leading_dot_is_part_of_the_reported_name_and_prevents_macros() {
    let env = Env::new(Dialect::NEWEST);
    let rows = [
        (
            ".x",
            "ERROR: <input>:1:2: undeclared reference to '.x' (in container '')",
        ),
        (
            ".f(1)",
            "ERROR: <input>:1:3: undeclared reference to '.f' (in container '')",
        ),
        (
            ".has({'a': 1}.a)",
            "ERROR: <input>:1:5: undeclared reference to '.has' (in container '')",
        ),
        (
            ".size(true)",
            "ERROR: <input>:1:6: found no matching overload for 'size' applied to '(bool)'",
        ),
    ];
    for (source, wanted) in rows {
        let errors = Program::compile(source, &env)
            .expect_err(source)
            .to_string();
        let first = errors.lines().next();
        assert_eq!(first, Some(wanted), "{source}");
    }
    // The variable's name is `.i` here.
    assert!(Program::compile("[1].all(.i, i == 1)", &env).is_err());
    for source in [".size('a') == 1", "[1].all(i, .i == 1)", ".type(1) == .int"] {
        assert!(Program::compile(source, &env).is_ok(), "{source}");
    }
}
