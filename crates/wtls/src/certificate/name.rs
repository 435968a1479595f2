//! The conventional form of a name: `service; organization; country; commonname; type=value …`.

/// The parts of a name. A literal semicolon is doubled in the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceName {
    /// What it is.
    pub service: String,
    /// Whose it is.
    pub organization: String,
    /// Where.
    pub country: String,
    /// A server's host name or address; may be empty.
    pub common_name: String,
    /// Extensions, as type and value.
    pub extensions: Vec<(String, String)>,
}

impl ServiceName {
    /// Takes a text apart. Missing parts are empty; an extension without `=` has an empty value.
    pub fn parse(text: &str) -> Self {
        let mut fields = split(text).into_iter();
        let mut next = || fields.next().unwrap_or_default();
        let (service, organization, country, common_name) = (next(), next(), next(), next());
        let extensions = fields
            .map(|field| match field.split_once('=') {
                Some((kind, value)) => (kind.to_owned(), value.to_owned()),
                None => (field, String::new()),
            })
            .collect();
        Self { service, organization, country, common_name, extensions }
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

/// Splits at single semicolons and drops the space behind them.
fn split(text: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == ';' && characters.next_if_eq(&';').is_none() {
            characters.next_if_eq(&' ');
            fields.push(String::new());
        } else if let Some(field) = fields.last_mut() {
            field.push(character);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_were() {
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
    fn an_authority_is_told_by_its_extension() {
        assert!(ServiceName::parse("CA; Org; FI; ; T=ca").is_authority());
        assert!(!ServiceName::parse("CA; Org; FI; T=ca").is_authority());
        assert_eq!(ServiceName::parse("a; b; c; host").common_name, "host");
        assert_eq!(ServiceName::parse("a;; b; c").service, "a; b");
    }
}
