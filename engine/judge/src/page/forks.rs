//! What a test costs with a fork of a server, and with a server of its own.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::forks::RESULT;

/// Of `crates/apiserver/benches/fork.rs`.
const BOUNDS: [&str; 2] = ["1 ms, 256 KiB", "10 s, 1 GiB"];

pub(super) fn text(root: &Path) -> Result<String, Box<dyn Error>> {
    let result = serde_json::from_str(&fs::read_to_string(root.join(RESULT))?)?;
    Ok(render(&result))
}

fn render(result: &Value) -> String {
    let mut text = "\
`cargo judge forks` measures, one after the other on one computer, a fork of a server in the process, a
thousand tests at once with a fork each on two threads (each creates, watches, lists and deletes objects),
`kubemu serve` until it answers, which the package for Go starts (unoptimised; the slowest of five), and a
kube-apiserver 1.36 with etcd, which envtest starts, with `cargo xtask cluster up --alone`, which waits for
kube-controller-manager too. The memory of a fork is what it adds; that of a server is that of its processes,
without kube-controller-manager. Other work on the computer makes the times longer.

| what a suite starts | time | memory | bound |
|---|---:|---:|---:|
"
    .to_owned();
    let number = |it: &Value| it.as_f64().unwrap_or_default();
    for it in result["forks"].as_array().into_iter().flatten() {
        let bound = match it["objects"].as_u64() {
            Some(10_000) => BOUNDS[0],
            _ => "",
        };
        let _ = writeln!(
            text,
            "| a fork of a server with {} objects | {:.1} us | {:.0} KiB | {bound} |",
            it["objects"],
            number(&it["nanoseconds"]) / 1e3,
            number(&it["bytes"]) / 1024.0
        );
    }
    let tests = &result["tests"];
    let _ = writeln!(
        text,
        "| {} tests at once, with a fork each of a server with {} objects | {:.2} s | {:.0} MiB | {} |",
        tests["count"],
        tests["objects"],
        number(&tests["nanoseconds"]) / 1e9,
        mebibytes(tests),
        BOUNDS[1]
    );
    let starts = result["serve"].as_array().into_iter().flatten();
    let slowest =
        starts.max_by(|a, b| number(&a["seconds"]).total_cmp(&number(&b["seconds"])));
    let servers = [
        ("`kubemu serve`", slowest.unwrap_or(&Value::Null)),
        ("kube-apiserver and etcd", &result["kubernetes"]),
    ];
    for (name, it) in servers {
        let _ = writeln!(
            text,
            "| {name} | {:.2} s | {:.0} MiB | |",
            number(&it["seconds"]),
            mebibytes(it)
        );
    }
    text
}

fn mebibytes(of: &Value) -> f64 {
    of["bytes"].as_f64().unwrap_or_default() / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn forks_and_servers_have_a_row_each_and_the_slowest_start_counts() {
        let text = render(&json!({
            "forks": [{"objects": 10_000, "nanoseconds": 2_500, "bytes": 4_096}],
            "tests": {"count": 1_000, "objects": 9, "nanoseconds": 1_500_000_000_u64,
                "bytes": 3 << 20},
            "serve": [{"seconds": 0.25, "bytes": 1 << 20}, {"seconds": 0.5, "bytes": 2 << 20}],
            "kubernetes": {"seconds": 7.6, "bytes": 500 << 20},
        }));
        let rows = "\
| a fork of a server with 10000 objects | 2.5 us | 4 KiB | 1 ms, 256 KiB |
| 1000 tests at once, with a fork each of a server with 9 objects | 1.50 s | 3 MiB | 10 s, 1 GiB |
| `kubemu serve` | 0.50 s | 2 MiB | |
| kube-apiserver and etcd | 7.60 s | 500 MiB | |
";
        assert!(text.ends_with(rows), "{text}");
    }
}
