//! The section about the cost of one event, from what `benches/hostile` has kept.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::stored_results::number;

/// The file in which `benches/hostile --record` keeps its second table.
const FILE: &str = "benches/costs/events.json";

const HEAD: &str = "
## What one event costs, and whom

Each row is a tenant in one namespace; nine machines of another namespace open at their edges in the
half minute after the event. The operator runs within the limits of the manifests: 256 MiB, and the
CPU limit below. All objects pass the shipped CRDs and policies; a calendar has 400 dates.

- *plans*: reconciles of ScheduledMachines, with the other tenant's.
- *requests*: requests of the operator about the tenant's namespace, without watches.
- *CPU*: CPU time beyond that of an empty namespace in the same time.
- *other tenant*: how late the latest of the other tenant's machines was created.
- *Lease*: the longest time between two renewals of the Lease, which lapses after 15 s.

```console
$ cargo build --profile dist --bin 5spot-controller --bin 5spot-webhook \
    --features fivespot-controller/allocator,fivespot-webhook/allocator
$ cargo run --release --bin hostile -- --record benches/costs/events.json
```

The bounds that the program asserts are 2 s for the other tenant, 1 s for `/healthz`, 256 MiB, a
Lease that never lapses, and for the tenant within a quota of ten machines 1 s of CPU time in the
first minute and 50 ms in each minute after. An operator on standby has filled its caches when it
takes over. One that starts fills them first, and serves nobody until then.

";

/// The section.
///
/// # Errors
/// The result cannot be read.
pub(super) fn part(root: &Path) -> Result<String, Box<dyn Error>> {
    let kept: Value = serde_json::from_str(&fs::read_to_string(root.join(FILE))?)?;
    let mut page = HEAD.to_owned();
    let _ = writeln!(
        page,
        "CPU limit: {}m.\n\n\
         | existing | event | plans | requests | CPU | other tenant | Lease | `/healthz` | memory |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|",
        kept["cpuMillis"]
    );
    for row in kept["rows"].as_array().into_iter().flatten() {
        let _ = writeln!(page, "{}", line(row));
    }
    Ok(page)
}

fn line(row: &Value) -> String {
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    let or = |key: &str, unit: &str, otherwise: &str| match &row[key] {
        Value::Null => otherwise.to_owned(),
        value => format!("{} {unit}", number(value)),
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        text("state"),
        text("event"),
        row["plans"],
        row["requests"],
        or("cpuMillis", "ms", ""),
        or("latenessMillis", "ms", "never"),
        or("leaseMillis", "ms", "lapsed"),
        or("healthMillis", "ms", ""),
        or("memoryMib", "MiB", "ended"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::line;

    #[test]
    fn an_edge_that_was_never_met_and_a_lapsed_lease_are_said() {
        let row = json!({
            "state": "empty", "event": "a machine created", "plans": 2, "requests": 3,
            "cpuMillis": 10, "latenessMillis": null, "leaseMillis": null, "healthMillis": 4,
            "memoryMib": 20,
        });
        let shown = "| empty | a machine created | 2 | 3 | 10 ms | never | lapsed | 4 ms | 20 MiB |";
        assert_eq!(line(&row), shown);
    }
}
