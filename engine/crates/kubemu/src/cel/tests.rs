use std::fs;

use super::{Args, EXAMPLES, run};
use kubemu_terminal::{Failure, Outcome};

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn cel(words: &[&str]) -> Result<(String, Outcome), Failure> {
    use clap::Parser as _;
    let words = ["cel"].iter().chain(words);
    let args = Line::try_parse_from(words).map(|line| line.args);
    let args = args.map_err(|error| Failure::new("words", error))?;
    let mut out = Vec::new();
    let outcome = run(&args, &mut out)?;
    Ok((String::from_utf8_lossy(&out).into_owned(), outcome))
}

/// Files with a CRD and with an object of its kind.
fn files(name: &str) -> (String, String) {
    let directory =
        std::env::temp_dir().join(format!("kubemu-cel-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let definition = "\
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              names: {type: array, maxItems: 4, items: {type: string, maxLength: 63}}
";
    let object = "apiVersion: example.com/v1\nkind: Widget\nspec: {names: [a, root]}\n";
    (write("crd.yaml", definition), write("widget.yaml", object))
}

#[test]
fn a_value_is_printed_with_its_type_and_cost() {
    let (text, outcome) = cel(&["[1, 2, 3].sum()"]).unwrap();
    assert_eq!(outcome, Outcome::Yes);
    insta::assert_snapshot!(text);
}

#[test]
fn false_is_a_no() {
    let (definition, object) = files("false");
    let expression = "self.spec.names.all(name, name != 'root')";
    let (text, outcome) =
        cel(&[expression, "--data", &object, "--schema", &definition]).unwrap();
    assert_eq!(outcome, Outcome::No);
    insta::assert_snapshot!(text);
}

#[test]
fn an_expression_that_does_not_fit_the_schema_is_refused_with_its_place() {
    let (definition, object) = files("schema");
    let failed =
        cel(&["self.spec.nope", "--data", &object, "--schema", &definition]).unwrap_err();
    insta::assert_snapshot!(failed.to_string());
    assert!(cel(&["has(self.spec.nope)", "--data", &object]).is_ok());
}

#[test]
fn a_run_that_fails_has_no_value() {
    let failed = cel(&["self.spec.nope == 1"]).unwrap_err().to_string();
    assert!(failed.starts_with("running the expression: "), "{failed}");
}

#[test]
fn the_examples_of_the_help_are_parsed() {
    use clap::Parser as _;
    for line in EXAMPLES.lines().skip(1) {
        let quoted: Vec<&str> = line.split('\'').collect();
        let rest = quoted[2].split_whitespace();
        let words = ["cel", quoted[1]].into_iter().chain(rest);
        assert!(Line::try_parse_from(words).is_ok(), "{line}");
    }
}

#[test]
fn an_expression_may_begin_with_a_minus() {
    let (text, outcome) = cel(&["-1 < 0"]).unwrap();
    assert_eq!(text, "true\ntype bool, cost 1\n");
    assert_eq!(outcome, Outcome::Yes);
    let (text, _) = cel(&["-1 + 3", "-o", "json"]).unwrap();
    assert!(text.contains("\"value\": 2"), "{text}");
    let (text, _) = cel(&["-o", "json", "-1 + 3"]).unwrap();
    assert!(text.contains("\"value\": 2"), "{text}");
}

#[test]
fn numbers_that_json_cannot_represent_are_shown() {
    let rows = [
        ("0.0 / 0.0", "\"NaN\"\n"),
        ("1.0 / 0.0", "\"+Inf\"\n"),
        ("-1.0 / 0.0", "\"-Inf\"\n"),
    ];
    for (expression, shown) in rows {
        let (text, _) = cel(&[expression]).unwrap();
        assert!(text.starts_with(shown), "{expression}: {text}");
    }
}
