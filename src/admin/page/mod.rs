//! The page for people: transfers as they come, who hands to whom, one record with all
//! that is kept of it. Made here, from templates that escape every value; nothing on it
//! comes from elsewhere.

mod contract;
mod graph;
mod lines;
mod list;
mod record;

use http::header::{CONTENT_SECURITY_POLICY, HeaderName, LOCATION, REFERRER_POLICY, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use maud::{DOCTYPE, Markup, html};

use super::handoffs::{no_such, store_fails};
use super::{Admin, Answer, PLAIN, Query, text};

const HTML: &str = "text/html; charset=utf-8";

/// Scripts and styles are files of their own, and nothing is fetched from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What of the page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View<'p> {
    /// Where people begin who know the address alone.
    Front,
    /// Transfers and the graph.
    List,
    /// The part of it that changes.
    Live,
    /// One record.
    Record(&'p str),
    /// A file.
    File(&'static str, &'static str),
}

impl View<'_> {
    pub(super) fn of(path: &str) -> Option<View<'_>> {
        Some(match path {
            "/" => View::Front,
            "/page" => View::List,
            "/page/live" => View::Live,
            "/page/style.css" => View::File("text/css; charset=utf-8", include_str!("style.css")),
            "/page/script.js" => View::File("text/javascript; charset=utf-8", include_str!("script.js")),
            "/page/icon.svg" | "/favicon.ico" => View::File("image/svg+xml", include_str!("icon.svg")),
            _ => View::Record(path.strip_prefix("/page/handoffs/")?),
        })
    }
}

impl Admin {
    pub(super) async fn page(&self, view: View<'_>, query: &Query<'_>) -> Answer {
        match view {
            View::Front => {
                let mut answer = text(StatusCode::SEE_OTHER, PLAIN, "/page\n");
                answer.headers_mut().insert(LOCATION, HeaderValue::from_static("/page"));
                answer
            }
            View::File(kind, content) => guarded(text(StatusCode::OK, kind, content)),
            View::List => match self.listed(query).await {
                Some(listed) => {
                    let search = list::search(&listed.wanted);
                    page("Transfers", &search, &html! { div id="live" { (list::live(&listed)) } })
                }
                None => store_fails(),
            },
            View::Live => match self.listed(query).await {
                Some(listed) => guarded(text(StatusCode::OK, HTML, list::live(&listed).into_string())),
                None => store_fails(),
            },
            View::Record(id) => match self.transfer(id).await {
                Ok(Some(seen)) => {
                    let lists = self.telemetry.lists.of(id);
                    let title = record::title(&seen);
                    page(&title, &record::back(), &record::record(&seen, lists.as_deref(), self.content))
                }
                Ok(None) => no_such(),
                Err(answer) => answer,
            },
        }
    }

    async fn listed(&self, query: &Query<'_>) -> Option<list::Listed> {
        let runs = self.runs.recent(query.limit).await.ok()?;
        Some(list::Listed::of(&runs, query.q.map(super::handoffs::decoded).unwrap_or_default(), query.limit))
    }
}

/// Asks the browser for the token.
pub(super) fn who_are_you() -> Answer {
    let mut answer = text(StatusCode::UNAUTHORIZED, PLAIN, "the token is the password; any name will do\n");
    answer
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"Seam\", charset=\"UTF-8\""));
    guarded(answer)
}

fn page(title: &str, top: &Markup, body: &Markup) -> Answer {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Seam" }
                link rel="icon" type="image/svg+xml" href="/page/icon.svg";
                link rel="stylesheet" href="/page/style.css";
                script src="/page/script.js" {}
            }
            body {
                a.skip href="#main" { "To the content" }
                header.top {
                    a.brand href="/page" { span.mark aria-hidden="true" {} "Seam" }
                    (top)
                    button.theme type="button" id="theme" hidden { "Theme" }
                }
                main id="main" tabindex="-1" { (body) }
                footer {
                    span { kbd { "j" } " " kbd { "k" } " move" }
                    span { kbd { "Enter" } " open" }
                    span { kbd { "/" } " search" }
                    span { kbd { "Esc" } " back" }
                    span.end { "Times are UTC" }
                }
            }
        }
    };
    guarded(text(StatusCode::OK, HTML, markup.into_string()))
}

/// With what keeps a browser from mixing it with anything else.
fn guarded(mut answer: Answer) -> Answer {
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let same_origin = HeaderValue::from_static("same-origin");
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), same_origin.clone());
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), same_origin);
    answer
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A size as people read it.
fn size(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{} B", grouped(bytes as u64)),
        10_000..10_000_000 => format!("{} kB", grouped(bytes as u64 / 1_000)),
        _ => format!("{} MB", grouped(bytes as u64 / 1_000_000)),
    }
}

/// A name of this project's as words.
fn words(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_in_groups() {
        let check = |number, expected: &str| assert_eq!(grouped(number), expected);
        check(0, "0");
        check(999, "999");
        check(1_000, "1,000");
        check(12_345_678, "12,345,678");
        assert_eq!(
            (size(512), size(65_536), size(25_000_000)),
            ("512 B".into(), "65 kB".into(), "25 MB".into())
        );
    }
}
