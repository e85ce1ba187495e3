//! The examples that `5spot dev` applies when it is given nothing else.

/// Each example's file name and text.
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
