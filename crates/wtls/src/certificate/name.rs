//! The conventional form of a name: `service; organization; country; commonname; type=value …`.

use std::borrow::Cow;

/// The parts of a name. A literal semicolon is doubled in the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceName {
    pub service: String,
    pub organization: String,
    pub country: String,
    /// A server's host name or address; may be empty.
    pub common_name: String,
    /// Extensions, as type and value.
    pub extensions: Vec<(String, String)>,
}

impl ServiceName {
    /// Parses a name. Missing parts are empty; an extension without `=` has an empty value.
    pub fn parse(text: &str) -> Self {
        let mut fields = Fields(Some(text));
        let mut next = || fields.next().unwrap_or_default().into_owned();
        let (service, organization, country, common_name) = (next(), next(), next(), next());
        let extensions = fields
            .map(|field| match field.split_once('=') {
                Some((kind, value)) => (kind.to_owned(), value.to_owned()),
                None => (field.into_owned(), String::new()),
            })
            .collect();
        Self { service, organization, country, common_name, extensions }
    }

    pub fn common_name_of(text: &str) -> Cow<'_, str> {
        Fields(Some(text)).nth(3).unwrap_or_default()
    }

    /// Whether this is the name of a certificate authority below the root (`T=ca`).
    pub fn is_authority(&self) -> bool {
        self.extensions.iter().any(|(kind, value)| kind == "T" && value == "ca")
    }
}

impl core::fmt::Display for ServiceName {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let escape = |part: &str| part.replace(';', ";;");
        write!(
            formatter,
            "{}; {}; {}",
            escape(&self.service),
            escape(&self.organization),
            escape(&self.country)
        )?;
        if !self.common_name.is_empty() || !self.extensions.is_empty() {
            write!(formatter, "; {}", escape(&self.common_name))?;
        }
        for (kind, value) in &self.extensions {
            write!(formatter, "; {}={}", escape(kind), escape(value))?;
        }
        Ok(())
    }
}

/// The parts between single semicolons, without a leading space.
struct Fields<'a>(Option<&'a str>);

impl<'a> Iterator for Fields<'a> {
    type Item = Cow<'a, str>;

    fn next(&mut self) -> Option<Cow<'a, str>> {
        let text = self.0.take()?;
        let bytes = text.as_bytes();
        let mut end = 0;
        let mut has_doubled = false;
        while let Some(byte) = bytes.get(end) {
            match (byte, bytes.get(end + 1)) {
                (b';', Some(b';')) => (end, has_doubled) = (end + 2, true),
                (b';', _) => break,
                _ => end += 1,
            }
        }
        let (field, rest) = text.split_at(end);
        self.0 = rest.strip_prefix(';').map(|rest| rest.strip_prefix(' ').unwrap_or(rest));
        Some(if has_doubled { Cow::Owned(field.replace(";;", ";")) } else { Cow::Borrowed(field) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsed_names_print_unchanged() {
        for text in [
            "Test Root; Test Org; US",
            "Gateway; Test Org; US; gw.test",
            "Issuing CA; Test;;Org; FI; ; T=ca",
            "; ; ",
        ] {
            assert_eq!(ServiceName::parse(text).to_string(), text);
        }
    }

    #[test]
    fn authority_is_recognised_by_its_extension() {
        assert!(ServiceName::parse("CA; Org; FI; ; T=ca").is_authority());
        assert!(!ServiceName::parse("CA; Org; FI; T=ca").is_authority());
        assert_eq!(ServiceName::parse("a; b; c; host").common_name, "host");
        assert_eq!(ServiceName::parse("a;; b; c").service, "a; b");
        for text in ["a; b; c; host", "a;; b; c; d; h;;;;ost;; ; x", "", "a; b", ";;;;;; ;;;;;h", ";;;"] {
            assert_eq!(ServiceName::common_name_of(text), ServiceName::parse(text).common_name);
        }
        assert_eq!(ServiceName::common_name_of("a;; b; c; d; h;;;;ost;; ; x"), "h;;ost; ");
    }
}
