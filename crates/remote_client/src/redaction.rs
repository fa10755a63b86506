//! Removes credentials from URLs, for messages.

use url::Url;

/// The URL without user, password, parameters and fragment.
pub(crate) fn redacted(url: &Url) -> String {
    let mut url = url.clone();
    // If a URL cannot have them, there is nothing to remove.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Removes everything that could be a credential from a text that should contain URLs. This is for messages about
/// invalid texts.
pub(crate) fn redacted_text(text: &str) -> String {
    let one = |word: &str| {
        let url = word.split('|').next().unwrap_or_default();
        // `user:password@host` is a URL too, of the scheme `user`.
        if let Some(url) = Url::parse(url).ok().filter(|url| !url.cannot_be_a_base()) {
            return redacted(&url);
        }
        let url = url.split(['?', '#']).next().unwrap_or_default();
        match (url.split_once("://"), url.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
            (None, Some((_, host))) => host.to_owned(),
            (_, None) => url.to_owned(),
        }
    };
    let words: Vec<String> = text.split_whitespace().map(one).collect();
    words.join(" ")
}
