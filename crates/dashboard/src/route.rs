//! The routes, and the checks before them.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use axum::routing::get;
use fivespot_controller::Key;
use jiff::Timestamp;

use crate::filter::Filter;
use crate::page;
use crate::serve::Shared;
use crate::state::Snapshot;
use crate::{asset, live};

/// The headers of every response. Scripts and styles are only loaded from this server, never
/// inline.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// The request header by which the script requests only the live part of a page.
const PART_HEADER: &str = "x-5spot-part";

/// The request header in which the script tells the width of a picture in pixels.
const WIDTH_HEADER: &str = "x-5spot-width";

/// The style sheet of all pages, and the script.
const STYLE: &str = "/style.css";
const SCRIPT: &str = "/live.js";

/// All routes. They only accept GET and HEAD. The pages are below the root of the session.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let at = |path: &str| format!("{}{path}", shared.access.root());
    Router::new()
        .route(&at("/"), get(week))
        .route(&at("/machines"), get(list))
        .route(&at("/machines/{namespace}/{name}"), get(machine))
        .route(&at("/capacities"), get(capacities))
        .route(&at("/savings"), get(savings))
        .route(&at("/savings.csv"), get(savings_csv))
        .route(&at("/live"), get(live::live))
        .route(STYLE, get(style))
        .route(SCRIPT, get(script))
        .fallback(get(not_found))
        .layer(middleware::from_fn_with_state(shared.clone(), guard))
        .with_state(shared)
}

/// Refuses requests for other host names and without the cookie, exchanges the token, and adds the
/// headers.
async fn guard(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<HashMap<String, String>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = if !shared.access.is_allowed_host(request.headers()) {
        let why = "the Host header does not match; open the URL that was printed\n";
        (StatusCode::MISDIRECTED_REQUEST, why).into_response()
    } else if shared.access.has_session(request.headers()) {
        next.run(request).await
    } else if [STYLE, SCRIPT].contains(&request.uri().path()) {
        // They contain no data of the cluster, and are outside the path of the cookie.
        next.run(request).await
    } else {
        // Not for HEAD: whoever only looks whether the URL exists must not use it up.
        let is_opened = request.method() == Method::GET && request.uri().path() == "/";
        let token = query.get("token").filter(|_| is_opened);
        match token.and_then(|token| shared.access.redeem(token)) {
            Some(cookie) => {
                let pages = format!("{}/", shared.access.root());
                let mut response = Redirect::to(&pages).into_response();
                response.headers_mut().insert(header::SET_COOKIE, cookie);
                response
            }
            None => (
                StatusCode::UNAUTHORIZED,
                Html(page::not_signed_in().into_string()),
            )
                .into_response(),
        }
    };
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

/// What a request for a page has.
type PageRequest = (State<Arc<Shared>>, Query<Filter>, HeaderMap);

async fn week(request: PageRequest) -> Html<String> {
    page_of_fleet("Week", request, page::week::body).await
}

async fn list(request: PageRequest) -> Html<String> {
    page_of_fleet("Machines", request, page::list::body).await
}

async fn capacities(request: PageRequest) -> Html<String> {
    page_of_fleet("Capacities", request, page::capacities::body).await
}

async fn savings(request: PageRequest) -> Html<String> {
    let State(shared) = request.0.clone();
    page_of_fleet("Savings", request, |snapshot, filter, now| {
        let report = page::savings::report(snapshot, filter, shared.rates.as_ref(), now);
        page::savings::body(snapshot, filter, &report, now)
    })
    .await
}

async fn page_of_fleet(
    title: &str,
    (State(shared), Query(filter), headers): PageRequest,
    body: impl FnOnce(&Snapshot, &Filter, Timestamp) -> page::Body,
) -> Html<String> {
    shared.wait_for_first_list().await;
    let now = (shared.now)().await;
    let filter = with_width(filter, &headers);
    let body = body(&shared.state.snapshot(), &filter, now);
    render(&shared, &headers, title, &filter, body)
}

async fn savings_csv(
    State(shared): State<Arc<Shared>>,
    Query(filter): Query<Filter>,
) -> Response {
    shared.wait_for_first_list().await;
    let now = (shared.now)().await;
    let snapshot = shared.state.snapshot();
    let report = page::savings::report(&snapshot, &filter, shared.rates.as_ref(), now);
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"5spot-{}.csv\"", report.month),
        ),
    ];
    (headers, fivespot_usage::csv::document(&report)).into_response()
}

async fn machine(
    State(shared): State<Arc<Shared>>,
    Path((namespace, name)): Path<(String, String)>,
    Query(filter): Query<Filter>,
    headers: HeaderMap,
) -> Response {
    let name = Key::new(namespace, name);
    shared.wait_for_first_list().await;
    let now = (shared.now)().await;
    let filter = with_width(filter, &headers);
    match page::machine::body(&shared, &name, &filter, now).await {
        Some(body) => {
            render(&shared, &headers, &name.to_string(), &filter, body).into_response()
        }
        None => not_found(State(shared), headers).await,
    }
}

async fn not_found(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let body = page::not_found(shared.access.root());
    let filter = Filter::default();
    let markup = render(&shared, &headers, "Not found", &filter, body);
    (StatusCode::NOT_FOUND, markup).into_response()
}

/// The filter with the width that the browser has for a picture.
fn with_width(filter: Filter, headers: &HeaderMap) -> Filter {
    let width = headers.get(WIDTH_HEADER).and_then(|it| it.to_str().ok());
    Filter {
        width: width.and_then(|it| it.parse().ok()),
        ..filter
    }
}

/// The whole page, or only its live part if the script requests it.
fn render(
    shared: &Shared,
    headers: &HeaderMap,
    title: &str,
    filter: &Filter,
    body: page::Body,
) -> Html<String> {
    let markup = if headers.contains_key(PART_HEADER) {
        body.live
    } else {
        let root = shared.access.root();
        page::document(&shared.title, root, title, filter, body)
    };
    Html(markup.into_string())
}

async fn style() -> Response {
    let kind = [(header::CONTENT_TYPE, "text/css; charset=utf-8")];
    (kind, asset::style()).into_response()
}

async fn script() -> Response {
    let kind = [(header::CONTENT_TYPE, "text/javascript; charset=utf-8")];
    (kind, asset::SCRIPT).into_response()
}
