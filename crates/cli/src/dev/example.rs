//! The examples that `5spot dev` applies if no manifests are given.

/// The file name and the text of each example.
pub(crate) const ALL: [(&str, &str); 2] = [
    (
        "business-hours.yaml",
        include_str!("../../../../examples/business-hours.yaml"),
    ),
    (
        "every-other-minute.yaml",
        include_str!("../../../../examples/every-other-minute.yaml"),
    ),
];
