//! The checks of the baseline level, which reject known privilege escalations.

use serde_json::Value;

use super::check::{
    Violation, containers, containers_text, distinct, has_own_users, named, plural,
    quoted, subject_text,
};
use crate::kind::pod::annotation::APP_ARMOR;
use crate::plugin::pod::{list, text};

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// The allowed sysctls, each with the first minor release that allows it.
const SYSCTLS: [(&str, u32); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];
const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

fn context<'a>(container: &'a Value, field: &str) -> &'a Value {
    &container["securityContext"][field]
}

pub(super) fn app_armor_profile(pod: &Value, _minor: u32) -> Option<Violation> {
    let wrong = |it: &Value| {
        let profile = context(it, "appArmorProfile");
        let kind = text(profile, "type");
        profile.is_object() && !matches!(kind, "RuntimeDefault" | "Localhost")
    };
    let kind = |it| text(context(it, "appArmorProfile"), "type");
    let spec = &pod["spec"];
    let of_pod = wrong(spec);
    let bad = named(pod, wrong);
    let mut actual: Vec<&str> =
        containers(pod).filter(|it| wrong(it)).map(kind).collect();
    actual.extend(of_pod.then(|| kind(spec)));
    let mut values: Vec<String> =
        distinct(actual).into_iter().map(str::to_owned).collect();
    let annotations = pod["metadata"]["annotations"].as_object();
    let annotations = annotations
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            let value = value.as_str()?;
            let allowed = value.is_empty()
                || value == "runtime/default"
                || value.starts_with("localhost/");
            (key.starts_with(APP_ARMOR) && !allowed).then(|| format!("{key}={value:?}"))
        });
    let mut annotations: Vec<String> = annotations.collect();
    annotations.sort_unstable();
    let mut who = subject_text(of_pod, &bad);
    if !annotations.is_empty() {
        let word = plural("annotation", "annotations", annotations.len());
        if !who.is_empty() {
            who.push_str(" and ");
        }
        who.push_str(word);
        values.extend(annotations);
    }
    if who.is_empty() {
        return None;
    }
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let reason = plural(
        "forbidden AppArmor profile",
        "forbidden AppArmor profiles",
        values.len(),
    );
    let detail = format!(
        "{who} must not set AppArmor profile type to {}",
        quoted(&values)
    );
    Some(Violation::new(reason, detail))
}

pub(super) fn capabilities(pod: &Value, _minor: u32) -> Option<Violation> {
    let added = |it| {
        let added = list(context(it, "capabilities"), "add").iter();
        let added = added.filter_map(Value::as_str);
        added.filter(|it| !CAPABILITIES.contains(it))
    };
    let bad = named(pod, |it| added(it).next().is_some());
    let found = distinct(containers(pod).flat_map(added));
    (!bad.is_empty()).then(|| {
        let detail = format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers_text(&bad),
            quoted(&found)
        );
        Violation::new("non-default capabilities", detail)
    })
}

pub(super) fn host_namespaces(pod: &Value, _minor: u32) -> Option<Violation> {
    let all = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let shared = all.filter(|it| pod["spec"][*it] == true);
    let shared: Vec<String> = shared.map(|it| format!("{it}=true")).collect();
    (!shared.is_empty()).then(|| Violation::new("host namespaces", shared.join(", ")))
}

pub(super) fn host_path_volumes(pod: &Value, _minor: u32) -> Option<Violation> {
    let volumes = list(&pod["spec"], "volumes").iter();
    let volumes = volumes.filter(|it| it["hostPath"].is_object());
    let volumes: Vec<&str> = volumes.map(|it| text(it, "name")).collect();
    (!volumes.is_empty()).then(|| {
        let word = plural("volume", "volumes", volumes.len());
        Violation::new("hostPath volumes", format!("{word} {}", quoted(&volumes)))
    })
}

pub(super) fn host_ports(pod: &Value, _minor: u32) -> Option<Violation> {
    let ports = |it| {
        let ports = list(it, "ports").iter();
        let ports = ports.filter_map(|it| it["hostPort"].as_i64());
        ports.filter(|it| *it != 0).map(|it| it.to_string())
    };
    let bad = named(pod, |it| ports(it).next().is_some());
    let found: Vec<String> = containers(pod).flat_map(ports).collect();
    let found = distinct(found.iter().map(String::as_str));
    (!bad.is_empty()).then(|| {
        let detail = format!(
            "{} {} {} {}",
            containers_text(&bad),
            plural("uses", "use", bad.len()),
            plural("hostPort", "hostPorts", found.len()),
            found.join(", ")
        );
        Violation::new("hostPort", detail)
    })
}

pub(super) fn host_probes(pod: &Value, _minor: u32) -> Option<Violation> {
    let hosts = |it: &'_ Value| -> Vec<String> {
        let lifecycle = &it["lifecycle"];
        let handlers = [
            &it["livenessProbe"],
            &it["readinessProbe"],
            &it["startupProbe"],
            &lifecycle["postStart"],
            &lifecycle["preStop"],
        ];
        let hosts = handlers.into_iter().flat_map(|it| {
            [&it["httpGet"], &it["tcpSocket"]].map(|it| text(it, "host").to_owned())
        });
        hosts.filter(|it| !it.is_empty()).collect()
    };
    let bad = distinct(named(pod, |it| !hosts(it).is_empty()));
    let found: Vec<String> = containers(pod).flat_map(hosts).collect();
    let found = distinct(found.iter().map(String::as_str));
    (!bad.is_empty()).then(|| {
        let detail = format!(
            "{} {} {} {}",
            containers_text(&bad),
            plural("uses", "use", bad.len()),
            plural(
                "probe or lifecycle host",
                "probe or lifecycle hosts",
                found.len()
            ),
            quoted(&found)
        );
        Violation::new("probe or lifecycle host", detail)
    })
}

pub(super) fn privileged(pod: &Value, _minor: u32) -> Option<Violation> {
    let bad = named(pod, |it| *context(it, "privileged") == true);
    (!bad.is_empty()).then(|| {
        let detail = format!(
            "{} must not set securityContext.privileged=true",
            containers_text(&bad)
        );
        Violation::new("privileged", detail)
    })
}

pub(super) fn proc_mount(pod: &Value, minor: u32) -> Option<Violation> {
    if has_own_users(pod, minor) {
        return None;
    }
    any_proc_mount(pod)
}

/// Rejects every `procMount` but the default one.
pub(super) fn any_proc_mount(pod: &Value) -> Option<Violation> {
    let mount = |it: &'_ Value| context(it, "procMount").as_str().map(str::to_owned);
    let wrong = |it: &Value| mount(it).is_some_and(|it| it != "Default");
    let bad = named(pod, wrong);
    let found: Vec<String> = containers(pod)
        .filter(|it| wrong(it))
        .filter_map(mount)
        .collect();
    let found = distinct(found.iter().map(String::as_str));
    (!bad.is_empty()).then(|| {
        let detail = format!(
            "{} must not set securityContext.procMount to {}",
            containers_text(&bad),
            quoted(&found)
        );
        Violation::new("procMount", detail)
    })
}

pub(super) fn se_linux_options(pod: &Value, minor: u32) -> Option<Violation> {
    let allowed = |kind: &str| {
        matches!(
            kind,
            "" | "container_t" | "container_init_t" | "container_kvm_t"
        ) || minor >= 31 && kind == "container_engine_t"
    };
    let options = |it| context(it, "seLinuxOptions");
    let wrong = |it| {
        let own = options(it);
        !allowed(text(own, "type"))
            || !text(own, "user").is_empty()
            || !text(own, "role").is_empty()
    };
    let spec = &pod["spec"];
    let bad = named(pod, wrong);
    let of_pod = wrong(spec);
    if bad.is_empty() && !of_pod {
        return None;
    }
    let all = || containers(pod).chain([spec]);
    let types = all().map(|it| text(options(it), "type"));
    let types = distinct(types.filter(|it| !allowed(it)));
    let mut data = Vec::new();
    if !types.is_empty() {
        let word = plural("type", "types", types.len());
        data.push(format!("{word} {}", quoted(&types)));
    }
    for field in ["user", "role"] {
        if all().any(|it| !text(options(it), field).is_empty()) {
            data.push(format!("{field} may not be set"));
        }
    }
    let detail = format!(
        "{} set forbidden securityContext.seLinuxOptions: {}",
        subject_text(of_pod, &bad),
        data.join("; ")
    );
    Some(Violation::new("seLinuxOptions", detail))
}

/// Whether a seccomp profile is set that is not allowed.
pub(super) fn has_wrong_seccomp(holder: &Value) -> bool {
    let profile = context(holder, "seccompProfile");
    let kind = text(profile, "type");
    profile.is_object() && !matches!(kind, "Localhost" | "RuntimeDefault")
}

/// Rejects seccomp profiles that are not allowed.
pub(super) fn explicit_seccomp(pod: &Value) -> Option<Violation> {
    let spec = &pod["spec"];
    let of_pod = has_wrong_seccomp(spec);
    let bad = named(pod, has_wrong_seccomp);
    if !of_pod && bad.is_empty() {
        return None;
    }
    let wrong = containers(pod)
        .chain([spec])
        .filter(|it| has_wrong_seccomp(it));
    let kinds = wrong.map(|it| text(context(it, "seccompProfile"), "type"));
    let detail = format!(
        "{} must not set securityContext.seccompProfile.type to {}",
        subject_text(of_pod, &bad),
        quoted(&distinct(kinds))
    );
    Some(Violation::new("seccompProfile", detail))
}

pub(super) fn seccomp_profile(pod: &Value, minor: u32) -> Option<Violation> {
    if minor >= 19 {
        return explicit_seccomp(pod);
    }
    let annotations = &pod["metadata"]["annotations"];
    let of_containers = containers(pod);
    let of_containers =
        of_containers.map(|it| format!("{SECCOMP_CONTAINER}{}", text(it, "name")));
    let all = std::iter::once(SECCOMP.to_owned()).chain(of_containers);
    let forbidden = all.filter_map(|key| {
        let value = annotations[&key].as_str()?;
        let allowed = matches!(value, "runtime/default" | "docker/default")
            || value.starts_with("localhost/");
        (!allowed).then(|| format!("{key}={value:?}"))
    });
    let forbidden: Vec<String> = forbidden.collect();
    let forbidden = distinct(forbidden.iter().map(String::as_str));
    (!forbidden.is_empty()).then(|| {
        let word = plural("annotation", "annotations", forbidden.len());
        let detail = format!("forbidden {word} {}", forbidden.join(", "));
        Violation::new("seccompProfile", detail)
    })
}

pub(super) fn sysctls(pod: &Value, minor: u32) -> Option<Violation> {
    let allowed = |name: &str| {
        let found = SYSCTLS.iter().find(|it| it.0 == name);
        found.is_some_and(|it| it.1 <= minor)
    };
    let set = list(&pod["spec"]["securityContext"], "sysctls").iter();
    let forbidden = set.map(|it| text(it, "name")).filter(|it| !allowed(it));
    let forbidden: Vec<&str> = forbidden.collect();
    (!forbidden.is_empty())
        .then(|| Violation::new("forbidden sysctls", forbidden.join(", ")))
}

pub(super) fn windows_host_process(pod: &Value, _minor: u32) -> Option<Violation> {
    let wrong = |it: &Value| context(it, "windowsOptions")["hostProcess"] == true;
    let (of_pod, bad) = (wrong(&pod["spec"]), named(pod, wrong));
    (of_pod || !bad.is_empty()).then(|| {
        let detail = format!(
            "{} must not set securityContext.windowsOptions.hostProcess=true",
            subject_text(of_pod, &bad)
        );
        Violation::new("hostProcess", detail)
    })
}
