//! kubectl prints what the pages show.

use fivespot_testkit::Page;

use super::session::Session;
use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] =
    &[promise!(the_page_about_admission_shows_what_is_printed).with_kubectl()];

const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";
/// Starts with a cluster that has the CRD and no policy.
async fn the_page_about_admission_shows_what_is_printed() {
    let session = Session::start("2026-03-06T15:00:00Z").await;
    for policy in fivespot_api::manifest::policies() {
        let policy = policy["metadata"]["name"].as_str().unwrap();
        for path in [
            format!("validatingadmissionpolicies/{policy}"),
            format!("validatingadmissionpolicybindings/{policy}-binding"),
        ] {
            session
                .cluster
                .delete(&format!("{REGISTRATION}/{path}"))
                .await;
        }
    }
    let page = Page::open("how-to/admission.md");
    let run = async |words: &str| {
        let printed = session.kubectl(words).await;
        // The page leaves this out, and newer versions of kubectl add it.
        printed
            .trim_end_matches("exit status: 1")
            .replace("\" deleted from default namespace", "\" deleted")
    };
    page.run("kubectl", run).await;
}
