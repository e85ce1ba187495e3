//! The diagrams of the documentation, from the tables that the code uses.

use fivespot_api::Phase;
use fivespot_api::manifest::GeneratedFile;
use fivespot_drawing::diagram::{Arrow, Diagram, Shape, svg};
use fivespot_install::pod::METRICS_PORT;
use fivespot_install::webhook::PORT as WEBHOOK_PORT;

/// The folder of the diagrams, below the root.
pub(crate) const DIRECTORY: &str = "docs/diagrams";

/// Every diagram.
pub(crate) fn files() -> Vec<GeneratedFile> {
    [
        ("precedence.svg", precedence()),
        ("lifecycle.svg", lifecycle()),
        ("connections.svg", connections()),
    ]
    .map(|(path, diagram)| GeneratedFile {
        path: path.to_owned(),
        text: svg(&diagram),
    })
    .to_vec()
}

/// The planner's list, from the highest precedence.
fn precedence() -> Diagram {
    let entries: Vec<_> = fivespot_plan::explain::precedence().collect();
    let name = |place: usize, name: &str| format!("{}. {name}", place + 1);
    let shapes = entries
        .iter()
        .enumerate()
        .map(|(place, (entry, reason))| Shape {
            name: name(place, entry),
            lines: vec![(*reason).to_owned()],
            column: 0,
            row: u32::try_from(place).unwrap_or(0),
        });
    let arrows = entries.windows(2).enumerate().map(|(place, pair)| Arrow {
        from: name(place, pair.first().map_or("", |(entry, _)| entry)),
        to: name(place + 1, pair.last().map_or("", |(entry, _)| entry)),
        lines: Vec::new(),
    });
    Diagram {
        title: "What decides about a machine: the first that applies, from the top"
            .to_owned(),
        description: entries
            .iter()
            .enumerate()
            .map(|(place, (entry, reason))| format!("{}: {reason}.", name(place, entry)))
            .collect::<Vec<_>>()
            .join(" "),
        shapes: shapes.collect(),
        arrows: arrows.collect(),
        pitch: (0, 74),
        width: 560,
    }
}

/// The position of a phase in the diagram.
fn place(phase: Phase) -> (u32, u32) {
    match phase {
        Phase::Inactive => (0, 0),
        Phase::Pending => (1, 0),
        Phase::Active => (2, 0),
        Phase::ShuttingDown => (1, 1),
        Phase::EmergencyRemove => (2, 1),
        Phase::Terminated => (0, 2),
        Phase::Error => (1, 2),
        Phase::Disabled => (2, 2),
    }
}

fn meaning(phase: Phase) -> &'static str {
    match phase {
        Phase::Inactive => "not wanted, and deleted",
        Phase::Pending => "wanted, not serving yet",
        Phase::Active => "the Node is Ready",
        Phase::ShuttingDown => "drained and deleted",
        Phase::EmergencyRemove => "removed for its owner",
        Phase::Terminated => "from any phase: kill switch",
        Phase::Error => "from any phase: step failed",
        Phase::Disabled => "enabled: false",
    }
}

/// A sentence for each arrow.
fn described(arrows: &[Arrow], before: &str, between: &str) -> String {
    let sentences = arrows.iter().map(|Arrow { from, to, lines }| {
        format!("{before}{from}{between}{to}: {}.", lines.join(" "))
    });
    sentences.collect::<Vec<_>>().join(" ")
}

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

fn lifecycle() -> Diagram {
    let arrow = |from: Phase, to: Phase, lines: &[&str]| Arrow {
        from: from.to_string(),
        to: to.to_string(),
        lines: owned(lines),
    };
    let arrows = vec![
        arrow(Phase::Inactive, Phase::Pending, &["window", "opens"]),
        arrow(Phase::Pending, Phase::Active, &["Node is", "Ready"]),
        arrow(Phase::Active, Phase::ShuttingDown, &["window closes"]),
        arrow(Phase::ShuttingDown, Phase::Active, &["wanted again"]),
        arrow(
            Phase::ShuttingDown,
            Phase::Inactive,
            &["all objects are gone"],
        ),
        arrow(
            Phase::Active,
            Phase::EmergencyRemove,
            &["host is reclaimed"],
        ),
        arrow(
            Phase::EmergencyRemove,
            Phase::Disabled,
            &["all objects are gone"],
        ),
    ];
    Diagram {
        title: "Phases of a ScheduledMachine".to_owned(),
        description: described(&arrows, "From ", " to "),
        shapes: Phase::ALL
            .iter()
            .map(|phase| Shape {
                name: phase.to_string(),
                lines: vec![meaning(*phase).to_owned()],
                column: place(*phase).0,
                row: place(*phase).1,
            })
            .collect(),
        arrows,
        pitch: (280, 130),
        width: 190,
    }
}

/// The connections between the programs, with their ports.
fn connections() -> Diagram {
    let shape = |name: &str, lines: &[&str], column, row| Shape {
        name: name.to_owned(),
        lines: owned(lines),
        column,
        row,
    };
    let arrow = |from: &str, to: &str, ports: String| Arrow {
        from: from.to_owned(),
        to: to.to_owned(),
        lines: ports.split("; ").map(str::to_owned).collect(),
    };
    let api = "443, 6443".to_owned();
    let arrows = vec![
        arrow("operator", "management cluster", api.clone()),
        arrow(
            "operator",
            "workload cluster",
            format!("{api}; k0smotron 30443"),
        ),
        arrow("Prometheus", "operator", METRICS_PORT.to_string()),
        arrow("management cluster", "webhook", WEBHOOK_PORT.to_string()),
        arrow("reclaim agent", "workload cluster", api.clone()),
        arrow("5spot, your browser", "management cluster", api),
    ];
    Diagram {
        title: "Connections and their TCP ports".to_owned(),
        description: described(&arrows, "", " connects to "),
        shapes: vec![
            shape(
                "5spot, your browser",
                &["the dashboard is on loopback"],
                0,
                0,
            ),
            shape("management cluster", &["API server, Cluster API"], 1, 0),
            shape("webhook", &["only without policies"], 2, 0),
            shape("Prometheus", &["metrics"], 0, 1),
            shape("operator", &["5spot-controller"], 1, 1),
            shape("workload cluster", &["API server"], 2, 1),
            shape("reclaim agent", &["on each node that has one"], 2, 2),
        ],
        arrows,
        pitch: (330, 120),
        width: 190,
    }
}
