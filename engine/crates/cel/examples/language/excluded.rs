//! Tests of the specification that are not judged. For most of them, Kubernetes' own libraries
//! (1.36) return another result than the specification, and this project follows Kubernetes.
//! For the others, the data does not contain what the test is about.

/// Why a test is not judged; `None` if it is judged.
pub(crate) fn reason(expr: &str) -> Option<&'static str> {
    let (reason, _) = ALL.iter().find(|(_, tests)| tests.contains(&expr))?;
    Some(reason)
}

const ALL: &[(&str, &[&str])] = &[
    (
        "Kubernetes' older strings library formats otherwise",
        &[
            r#""%.6e".format([1052.032911275])"#,
            r#""%f".format([2])"#,
            r#""%f".format([3u])"#,
            r#""%e".format([2.71828])"#,
            r#""%e".format([2])"#,
            r#""%e".format([3u])"#,
            r#""%e".format([double("NaN")])"#,
            r#""%e".format([double("Infinity")])"#,
            r#""%e".format([double("-Infinity")])"#,
            r#""%d".format([double("NaN")])"#,
            r#""%d".format([double("Infinity")])"#,
            r#""%d".format([double("-Infinity")])"#,
            r#""%f".format([double("Infinity")])"#,
            r#""%f".format([double("-Infinity")])"#,
            r#""%s".format([["abc", 3.14, null, [9, 8, 7, 6], timestamp("2023-02-03T23:31:20Z")]])"#,
            r#""%s".format([{"key1": b"xyz", "key5": null, "key2": duration("2h"), "key4": true, "key3": 2.71828}])"#,
            r#""%s".format([{1: "value1", uint(2): "value2", true: double("NaN")}])"#,
            r#""%e".format([dyn(2.71828)])"#,
            r#""%s".format([[double("NaN"), double("Infinity"), double("-Infinity")]])"#,
            r#""%s".format([dyn([6, 4.2, "a string"])])"#,
            r#""%s".format([{"strKey":"x", 6:duration("422s"), true:42}])"#,
            "str_var.format([1052.032911275])",
        ],
    ),
    (
        "Kubernetes keeps the last of several entries with equal keys, without an error",
        &["{true:1,false:2,true:3}[true]"],
    ),
    (
        "Kubernetes finds nothing after the end of a string, without an error",
        &[
            "'tacocat'.indexOf('a', 30) == -1",
            "'tacocat'.lastIndexOf('a', 30) == -1",
        ],
    ),
    (
        "Kubernetes treats a value without fields as one that lacks the field",
        &[
            "{'null_key': dyn(null)}.?null_key.invalid.hasValue()",
            "{true: dyn(0)}[?true].absent.hasValue()",
        ],
    ),
    (
        "an escape that the data lost",
        &[r#"b''' ? " ' ` '''"#, r#"b""" ? " ' ` """"#],
    ),
];
