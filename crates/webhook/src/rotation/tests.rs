use super::*;

const NAME: &str = "webhook.5spot-system.svc";
const DAY: SignedDuration = SignedDuration::from_hours(24);

fn start() -> Timestamp {
    "2026-03-06T21:30:00Z".parse().unwrap()
}

fn names() -> Vec<String> {
    vec![NAME.to_owned()]
}

/// What is stored after `now`, for a replica that observes `trusted`.
fn at(
    current: &Certificates,
    trusted: &str,
    now: Timestamp,
) -> (Certificates, Timestamp) {
    current.next(&names(), trusted, now).unwrap()
}

#[test]
fn the_first_certificate_is_signed_at_once_and_then_kept() {
    let (current, due) = at(&Certificates::default(), "", start());
    assert!(current.serving().is_some());
    assert_eq!(current.bundle().matches("BEGIN CERTIFICATE").count(), 1);
    assert_eq!(
        current.expiry(),
        Some("2026-04-05T00:00:00Z".parse().unwrap())
    );
    let (again, _) = at(&current, "", start());
    assert_eq!(again, current);
    let (again, _) = at(
        &current,
        &current.bundle(),
        due - SignedDuration::from_secs(1),
    );
    assert_eq!(again, current);
    let (renewed, _) = at(&current, &current.bundle(), due);
    assert_ne!(renewed.serving(), current.serving());
    assert_eq!(renewed.bundle(), current.bundle());
}

#[test]
fn a_written_text_is_read_and_a_damaged_one_is_empty() {
    let (current, _) = at(&Certificates::default(), "", start());
    assert_eq!(Certificates::read(&current.text().unwrap()), current);
    assert_eq!(
        Certificates::read(b"{\"authorities\": 3}"),
        Certificates::default()
    );
    assert_eq!(Certificates::read(b""), Certificates::default());
}

#[test]
fn the_debug_output_contains_no_key() {
    let (current, _) = at(&Certificates::default(), "", start());
    assert!(!format!("{current:?}").contains("PRIVATE"));
}

/// A client that trusts only one CA and one that trusts all accept what is served at every
/// instant of three years; no CA signs anything that the configuration does not contain.
#[test]
fn a_new_ca_is_trusted_before_it_signs_and_an_old_one_afterwards() {
    let (mut current, mut due) = at(&Certificates::default(), "", start());
    let mut configured = current.bundle();
    let (mut most, mut steps, mut signers) = (1, 0, std::collections::BTreeSet::new());
    let mut now = start();
    while now < start() + DAY * 1000 {
        now = due.max(now + SignedDuration::from_mins(1));
        let known_before = configured.clone();
        (current, _) = at(&current, &configured, now);
        let issuer = current.serving.as_ref().unwrap().issuer;
        let signer = current
            .authorities
            .iter()
            .find(|it| it.made == issuer)
            .unwrap();
        assert!(known_before.contains(&signer.certificate), "at {now}");
        assert!(
            now < current.expiry().unwrap() && now < signer.ends,
            "at {now}"
        );
        most = most.max(current.authorities.len());
        signers.insert(issuer);
        // The webhook configuration is updated.
        configured = current.bundle();
        (current, due) = at(&current, &configured, now);
        assert!(due > now, "{due} at {now}");
        steps += 1;
    }
    assert_eq!(most, 2);
    assert_eq!(signers.len(), 4);
    assert!(steps < 80, "{steps}");
}

#[test]
fn a_ca_that_is_not_in_the_configuration_signs_only_if_no_other_is_valid() {
    let (current, _) = at(&Certificates::default(), "", start());
    let old = current.bundle();
    let late = start() + DAY * 300;
    let (current, _) = at(&current, &old, late);
    let (current, _) = at(&current, &old, late + DAY * 20);
    let serving = current.serving.as_ref().unwrap();
    assert_eq!(current.authorities.len(), 2);
    assert_eq!(serving.issuer, current.authorities[0].made);
    // When the first CA has expired, there is no choice.
    let (current, _) = at(&current, &old, start() + DAY * 366);
    assert_eq!(current.authorities.len(), 1);
    assert!(current.serving.is_some() && !old.contains(&current.bundle()));
}

#[test]
fn replicas_that_need_different_names_do_not_undo_each_other() {
    let (current, _) = at(&Certificates::default(), "", start());
    let others = vec!["127.0.0.1".to_owned()];
    let (both, _) = current.next(&others, "", start()).unwrap();
    assert_ne!(both, current);
    let (again, _) = at(&both, "", start());
    assert_eq!(again, both);
    let (again, _) = both.next(&others, "", start()).unwrap();
    assert_eq!(again, both);
}

#[test]
fn too_many_names_are_rejected() {
    let many: Vec<String> = (0..40).map(|it| format!("name-{it}")).collect();
    let refused = Certificates::default()
        .next(&many, "", start())
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a certificate has at most 32 names, not 40"
    );
}
