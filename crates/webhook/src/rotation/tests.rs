use super::*;

const NAME: &str = "webhook.5spot-system.svc";
const DAY: SignedDuration = SignedDuration::from_hours(24);

fn start() -> Timestamp {
    "2026-03-06T21:30:00Z".parse().unwrap()
}

fn names() -> Vec<String> {
    vec![NAME.to_owned()]
}

/// What is kept after `now`, for an instance that sees `trusted`.
fn at(kept: &Certificates, trusted: &str, now: Timestamp) -> (Certificates, Timestamp) {
    kept.next(&names(), trusted, now).unwrap()
}

#[test]
fn the_first_certificate_is_signed_at_once_and_then_left_alone() {
    let (kept, due) = at(&Certificates::default(), "", start());
    assert!(kept.serving().is_some());
    assert_eq!(kept.bundle().matches("BEGIN CERTIFICATE").count(), 1);
    assert_eq!(kept.ends(), Some("2026-04-05T00:00:00Z".parse().unwrap()));
    let (again, _) = at(&kept, "", start());
    assert_eq!(again, kept);
    let (again, _) = at(&kept, &kept.bundle(), due - SignedDuration::from_secs(1));
    assert_eq!(again, kept);
    let (renewed, _) = at(&kept, &kept.bundle(), due);
    assert_ne!(renewed.serving(), kept.serving());
    assert_eq!(renewed.bundle(), kept.bundle());
}

#[test]
fn what_was_written_is_read_and_what_is_damaged_is_made_anew() {
    let (kept, _) = at(&Certificates::default(), "", start());
    assert_eq!(Certificates::read(&kept.text().unwrap()), kept);
    assert_eq!(
        Certificates::read(b"{\"authorities\": 3}"),
        Certificates::default()
    );
    assert_eq!(Certificates::read(b""), Certificates::default());
}

#[test]
fn a_debug_print_shows_no_key() {
    let (kept, _) = at(&Certificates::default(), "", start());
    assert!(!format!("{kept:?}").contains("PRIVATE"));
}

/// Whoever trusts one authority only, and whoever trusts all, accepts what is served at every
/// instant of three years; nothing is ever signed by what the configuration does not hold.
#[test]
fn a_new_authority_is_trusted_before_it_signs_and_an_old_one_after() {
    let (mut kept, mut due) = at(&Certificates::default(), "", start());
    let mut configured = kept.bundle();
    let (mut most, mut steps, mut signers) = (1, 0, std::collections::BTreeSet::new());
    let mut now = start();
    while now < start() + DAY * 1000 {
        now = due.max(now + SignedDuration::from_mins(1));
        let known_before = configured.clone();
        (kept, _) = at(&kept, &configured, now);
        let issuer = kept.serving.as_ref().unwrap().issuer;
        let signer = kept
            .authorities
            .iter()
            .find(|it| it.made == issuer)
            .unwrap();
        assert!(known_before.contains(&signer.certificate), "at {now}");
        assert!(now < kept.ends().unwrap() && now < signer.ends, "at {now}");
        most = most.max(kept.authorities.len());
        signers.insert(issuer);
        // The configuration follows.
        configured = kept.bundle();
        (kept, due) = at(&kept, &configured, now);
        assert!(due > now, "{due} at {now}");
        steps += 1;
    }
    assert_eq!(most, 2);
    assert_eq!(signers.len(), 4);
    assert!(steps < 80, "{steps}");
}

#[test]
fn an_authority_that_the_configuration_does_not_hold_signs_nothing_while_another_holds() {
    let (kept, _) = at(&Certificates::default(), "", start());
    let old = kept.bundle();
    let late = start() + DAY * 300;
    let (kept, _) = at(&kept, &old, late);
    let (kept, _) = at(&kept, &old, late + DAY * 20);
    let serving = kept.serving.as_ref().unwrap();
    assert_eq!(kept.authorities.len(), 2);
    assert_eq!(serving.issuer, kept.authorities[0].made);
    // At its end there is no choice.
    let (kept, _) = at(&kept, &old, start() + DAY * 366);
    assert_eq!(kept.authorities.len(), 1);
    assert!(kept.serving.is_some() && !old.contains(&kept.bundle()));
}

#[test]
fn instances_that_want_different_names_do_not_undo_each_other() {
    let (kept, _) = at(&Certificates::default(), "", start());
    let others = vec!["127.0.0.1".to_owned()];
    let (both, _) = kept.next(&others, "", start()).unwrap();
    assert_ne!(both, kept);
    let (again, _) = at(&both, "", start());
    assert_eq!(again, both);
    let (again, _) = both.next(&others, "", start()).unwrap();
    assert_eq!(again, both);
}

#[test]
fn more_names_than_a_certificate_takes_are_refused() {
    let many: Vec<String> = (0..40).map(|it| format!("name-{it}")).collect();
    let refused = Certificates::default()
        .next(&many, "", start())
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a certificate has at most 32 names, not 40"
    );
}
