//! `grpc(s)://host[:port][/instance]`.

use std::fmt;
use std::str::FromStr;

/// Where a Remote Execution API server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// `host:port`.
    pub authority: String,
    /// The instance; empty if the server has only one.
    pub instance: String,
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnAddress {
    /// Another scheme, or none.
    #[error("the address must be grpc://HOST:PORT[/INSTANCE] or grpcs://HOST:PORT[/INSTANCE]")]
    Scheme,
    /// Secrets have a setting of their own, and messages show the address.
    #[error("the address has a user name or password: give it as a header or token instead")]
    Credentials,
    /// No host, or a port that is no number.
    #[error("the address has no host, or an invalid port")]
    Host,
}

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let (tls, rest) = match text.split_once("://") {
            Some(("grpc", rest)) => (false, rest),
            Some(("grpcs", rest)) => (true, rest),
            _ => return Err(NotAnAddress::Scheme),
        };
        let (authority, instance) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(NotAnAddress::Credentials);
        }
        let default = if tls { 443 } else { 80 };
        let parsed: http::uri::Authority = authority.parse().map_err(|_| NotAnAddress::Host)?;
        let after_host = authority.strip_prefix(parsed.host()).unwrap_or_default();
        let port = match after_host.strip_prefix(':') {
            Some(port) => port.parse::<u16>().map_err(|_| NotAnAddress::Host)?,
            None if after_host.is_empty() => default,
            None => return Err(NotAnAddress::Host),
        };
        if parsed.host().is_empty() || instance.contains(['?', '#']) {
            return Err(NotAnAddress::Host);
        }
        Ok(Self {
            tls,
            authority: format!("{}:{port}", parsed.host()),
            instance: instance.trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "grpcs" } else { "grpc" };
        write!(f, "{scheme}://{}", self.authority)?;
        if self.instance.is_empty() {
            return Ok(());
        }
        write!(f, "/{}", self.instance)
    }
}

impl Address {
    /// As gRPC and credential helpers know it.
    pub fn uri(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}/", self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let shown = |text: &str| text.parse::<Address>().map(|a| a.to_string());
        assert_eq!(shown("grpc://h:1/a/b/"), Ok("grpc://h:1/a/b".to_owned()));
        assert_eq!(shown("grpcs://h"), Ok("grpcs://h:443".to_owned()));
        assert_eq!(shown("grpc://[::1]:9"), Ok("grpc://[::1]:9".to_owned()));
        assert_eq!(shown("http://h"), Err(NotAnAddress::Scheme));
        assert_eq!(shown("grpc://u:p@h:1"), Err(NotAnAddress::Credentials));
        for wrong in [
            "grpc://",
            "grpc://h:x",
            "grpc://h:99999",
            "grpc://h:1/a?b",
            "grpc:///i",
        ] {
            assert_eq!(shown(wrong), Err(NotAnAddress::Host), "{wrong}");
        }
    }
}
