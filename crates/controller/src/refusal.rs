//! What a refusal of an API server asks for.

/// The rule that an API server's refusal names: `get of machines.cluster.x-k8s.io` for `... cannot
/// get resource "machines" in API group "cluster.x-k8s.io" ...`.
pub fn needed_role(message: &str) -> Option<String> {
    let (_, rest) = message.split_once(" cannot ")?;
    let (verb, rest) = rest.split_once(" resource \"")?;
    let (resource, rest) = rest.split_once("\" in API group \"")?;
    let (group, _) = rest.split_once('"')?;
    Some(match group {
        "" => format!("{verb} of {resource}"),
        group => format!("{verb} of {resource}.{group}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_role_that_would_allow_it() {
        let refusal = |resource: &str, group: &str| {
            format!(
                "{resource}.{group} \"b\" is forbidden: User \"owner\" cannot get resource \
                 \"{resource}\" in API group \"{group}\" in the namespace \"default\""
            )
        };
        let role = |resource: &str, group: &str| needed_role(&refusal(resource, group));
        assert_eq!(
            role("clusters", "cluster.x-k8s.io").as_deref(),
            Some("get of clusters.cluster.x-k8s.io")
        );
        assert_eq!(role("secrets", "").as_deref(), Some("get of secrets"));
        assert_eq!(needed_role("no"), None);
    }
}
