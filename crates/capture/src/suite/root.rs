//! Infers the key of a chain's root, which is not sent, from the last signature.
//!
//! The length of a signature shows the size of its key. The exponent of an RSA key stays unknown. Among several
//! curves of one size, the curve of the certified key is assumed, or else the usual one. A remark names the
//! alternatives, unless the assumed root is what nearly all roots of TLS are: a NIST curve over a prime field, or
//! RSA in a chain without exponents of 3.

use shakedown_trace::suite::Curve;

/// The protocol family, which determines the possible curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtocolFamily {
    Tls,
    Wtls,
}

impl ProtocolFamily {
    fn name(self, curve: Curve) -> Option<&'static str> {
        match self {
            Self::Tls => curve.tls_group().map(|_| curve.name()),
            Self::Wtls => curve.wtls_name(),
        }
    }

    fn usual(self) -> &'static [&'static str] {
        match self {
            Self::Tls => &["p224", "p256", "p384", "p521"],
            Self::Wtls => &[],
        }
    }
}

/// The key that made the last signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// A known key, as spelled in suite names.
    Known(Box<str>),
    /// An RSA key of this size, and whether its exponent is assumed to be 3.
    Rsa { bits: usize, small_exponent: bool },
    /// One of these curves, the likeliest first; never empty.
    Curves { family: ProtocolFamily, candidates: Vec<Curve>, hint: Option<Curve> },
}

impl Root {
    /// The key of an ECDSA signature whose larger number has `longest_bits` bits.
    pub(crate) fn of_ecdsa(
        family: ProtocolFamily,
        longest_bits: usize,
        fits: impl Fn(Curve) -> bool,
    ) -> Option<Self> {
        let near = |curve: &Curve| {
            let order = order_bits(*curve);
            family.name(*curve).is_some()
                && fits(*curve)
                && (longest_bits..=longest_bits + 16).contains(&order)
        };
        let mut candidates: Vec<Curve> = Curve::all().filter(near).collect();
        // Both numbers rarely begin with zeros: seven in each, in one of 16,000 signatures.
        let least = candidates.iter().map(|curve| order_bits(*curve)).min()?;
        candidates.retain(|curve| order_bits(*curve) < least + 7);
        candidates.sort_by_key(|curve| order_bits(*curve));
        Some(Self::Curves { family, candidates, hint: None })
    }
}

impl Root {
    /// The root that is possible for both.
    fn shared(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Known(name), other) | (other, Self::Known(name)) => {
                other.may_be(name).then(|| Self::Known(name.clone()))
            }
            (Self::Curves { family, candidates, hint }, Self::Curves { candidates: others, .. }) => {
                let mut candidates = candidates.clone();
                candidates.retain(|curve| others.contains(curve));
                (!candidates.is_empty()).then_some(Self::Curves { family: *family, candidates, hint: *hint })
            }
            _ => (self == other).then(|| self.clone()),
        }
    }

    fn may_be(&self, name: &str) -> bool {
        match self {
            Self::Known(own) => **own == *name,
            Self::Rsa { bits, .. } => [false, true].iter().any(|&small| name == rsa(*bits, small)),
            Self::Curves { candidates, .. } => {
                Curve::from_name(name).is_some_and(|curve| candidates.contains(&curve))
            }
        }
    }
}

/// An RSA key as spelled in suite names.
pub(super) fn rsa(bits: usize, small_exponent: bool) -> String {
    format!("rsa{bits}{}", if small_exponent { "e3" } else { "" })
}

/// A chain as sent, and its root, which was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Keys as spelled in suite names, leaf first.
    sent: Vec<String>,
    root: Root,
}

impl Chain {
    pub(super) fn new(sent: Vec<String>, root: Root) -> Self {
        Self { sent, root }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        let root = match &self.root {
            Root::Curves { candidates, .. } => candidates.capacity() * size_of::<Curve>(),
            Root::Known(name) => name.len(),
            Root::Rsa { .. } => 0,
        };
        let names: usize = self.sent.iter().map(String::capacity).sum();
        size_of::<Self>() + self.sent.capacity() * size_of::<String>() + names + root
    }

    /// Prefers a root on a curve that the client trusts, if exactly one of the possible curves is trusted.
    pub(super) fn prefer(&mut self, trusted: &[Curve]) {
        if let Root::Curves { candidates, hint, .. } = &mut self.root {
            let mut named = candidates.iter().filter(|curve| trusted.contains(curve));
            *hint = named.next().copied().filter(|_| named.next().is_none());
        }
    }

    /// The common description of both sides' chains, if their keys are equal and their roots can be.
    pub(super) fn shared(mut self, other: &Self) -> Option<Self> {
        if self.sent != other.sent {
            return None;
        }
        self.root = self.root.shared(&other.root)?;
        Some(self)
    }

    /// The keys part of a suite name.
    pub(super) fn keys(&self) -> String {
        let root = match &self.root {
            Root::Known(name) => name.to_string(),
            Root::Rsa { bits, small_exponent } => rsa(*bits, *small_exponent),
            Root::Curves { family, candidates, hint } => {
                let taken = self.taken(*family, candidates, *hint).and_then(|curve| family.name(curve));
                taken.unwrap_or_default().to_owned()
            }
        };
        format!("{}@{root}", self.sent.join("@"))
    }

    /// The possible alternatives to the assumed root.
    pub(super) fn remark(&self) -> Option<String> {
        match &self.root {
            Root::Known(_) => None,
            Root::Rsa { small_exponent, .. } => {
                let (taken, other) = if *small_exponent { (3, 65537) } else { (65537, 3) };
                self.sent.iter().any(|name| name.ends_with("e3")).then(|| {
                    format!(
                        "the exponent of the root's key is not visible; assumed: {taken}, possible: {other}"
                    )
                })
            }
            Root::Curves { family, candidates, hint } => {
                let taken = self.taken(*family, candidates, *hint)?;
                if family.usual().contains(&taken.name()) {
                    return None;
                }
                let others: Vec<&str> = candidates
                    .iter()
                    .filter(|&&one| one != taken)
                    .filter_map(|one| family.name(*one))
                    .collect();
                let (last, before) = others.split_last()?;
                let before = before.join(", ");
                let others =
                    if before.is_empty() { (*last).to_owned() } else { format!("{before} or {last}") };
                let taken = family.name(taken)?;
                Some(format!("the root's curve is not visible; assumed: {taken}, possible: {others}"))
            }
        }
    }

    fn taken(&self, family: ProtocolFamily, candidates: &[Curve], hint: Option<Curve>) -> Option<Curve> {
        let among = |curve: &Curve| candidates.contains(curve);
        let own = self.sent.last().and_then(|name| Curve::from_name(name)).filter(among);
        let usual = || family.usual().iter().filter_map(|name| Curve::from_name(name)).find(among);
        hint.filter(among).or(own).or_else(usual).or_else(|| candidates.first().copied())
    }
}

/// Bits of the numbers in a curve's signatures. (An order just above a power of two has one more bit, which
/// practically no number below it uses.)
pub(super) fn order_bits(curve: Curve) -> usize {
    let field = usize::from(curve.field_bits());
    match curve.name() {
        "wtls1" | "sect113r1" => 112,
        "sect163k1" | "sect163r1" | "sect163r2" | "c2pnb163v1" => 162,
        "sect193r1" | "sect193r2" => 192,
        "sect233k1" => 231,
        "sect233r1" => 232,
        "sect239k1" => 237,
        "sect283k1" => 281,
        "sect283r1" => 282,
        "sect409k1" => 407,
        "sect409r1" => 408,
        "sect571k1" => 569,
        "sect571r1" => 570,
        _ => field,
    }
}
