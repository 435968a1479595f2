//! Mobiles, SGSNs and an HSS together in virtual time.

use super::lab::{self, Cache, Card, Lab, NodeCertificates};
use super::{AkaError, Operator, suite_of};
use serde::{Deserialize, Serialize};
use shakedown_aka::hss::Hss;
use shakedown_aka::mobile::{Mobile, MobileEvent, Subscription};
use shakedown_aka::names::{Imsi, Network, NodeName, Temporary};
use shakedown_aka::run::{Access, Measured, Runner, Setting, Work};
use shakedown_aka::sessions::{MemoryStore, Policy, Sessions};
use shakedown_aka::sgsn::Node;
use shakedown_link::{Bearer, BearerSpec, Distribution, DistributionSpec, Ns, Probability, Purpose, Stream};
use shakedown_ossl::random::Seeded;
use shakedown_sim::PricedHandshake;
use shakedown_sim::tcp::{Jiffies, TcpConfig};
use shakedown_stacks::{Connector, Settings};
use shakedown_trace::{Session, Suite};
use shakedown_virtual::wire::Hosts;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What to run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Between mobile and SGSN.
    pub bearer: BearerSpec,
    /// The full handshake, priced.
    pub full: PricedHandshake,
    /// The resumed one, priced.
    pub resumed: PricedHandshake,
    /// How many attaches, one after the other.
    pub attaches: usize,
    /// How many mobiles take turns.
    pub mobiles: usize,
    /// Mean of the exponential time between two attaches.
    pub gap_s: f64,
    /// Mobiles are of another network than the one that serves them.
    pub roaming: bool,
    /// Share of the attaches that go to another SGSN than the mobile's last.
    pub moves: f64,
    /// Others' requests to the SGSNs' processors per second.
    pub background_per_s: f64,
    /// How many of those processors there are.
    pub workers: usize,
    /// The first threshold.
    pub max_resumptions: u32,
    /// The second.
    pub max_age_s: f64,
    /// From a node's question to another's answer.
    pub core_round_trip_s: f64,
    /// What a mobile does before each handshake.
    pub preparation: DistributionSpec,
    /// After which a mobile gives up.
    pub patience_s: f64,
    /// Of everything that is drawn.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Each attach.
    pub attaches: Vec<Measured>,
    /// Sessions that were offered and not resumed, by decision.
    pub not_resumed: BTreeMap<&'static str, u64>,
    /// Subscribers that went from one SGSN to the other.
    pub handed_over: u64,
    /// Others' requests that were served.
    pub background_served: u64,
    /// How long it all took in virtual time.
    pub length_s: f64,
}

/// The nodes of a laboratory, and its subscribers.
pub struct Deployment {
    suite: Suite,
    settings: Settings,
    /// Of the serving network.
    pub nodes: Vec<Node<Lab, MemoryStore>>,
    /// By home network.
    pub homes: HashMap<Network, Hss>,
    /// The subscribers' cards.
    pub cards: Vec<Card>,
    /// What they took from their last attach: temporary identity and session.
    kept: Vec<(Option<Temporary>, Option<Session>)>,
    connectors: Vec<Arc<dyn Connector>>,
    serving: Network,
    operators: [Operator; 2],
}

const HOME: &str = "20201";
const ABROAD: &str = "20801";
const NODES: [&str; 2] = ["sgsn-1", "sgsn-2"];

impl Deployment {
    /// Two SGSNs of one network, under a policy, and so many subscribers of the same network or, roaming, of another.
    ///
    /// # Errors
    /// [`AkaError`].
    pub fn new(suite: &Suite, mobiles: usize, roaming: bool, policy: Policy) -> Result<Self, AkaError> {
        let suite = suite_of(suite)?;
        let settings = Settings { instrumented: false, ..Settings::default() };
        let kinds = lab::kinds(&suite);
        let home = Operator::new(&Network::new(HOME)?, kinds, &settings.profile)?;
        let abroad = Operator::new(&Network::new(ABROAD)?, kinds, &settings.profile)?;
        let serving = if roaming { &abroad } else { &home };
        let mut nodes = Vec::new();
        for name in NODES {
            let certificates = NodeCertificates {
                leaf: serving.node(name)?,
                authority: serving.authority()?,
                root: serving.root()?,
                partners: [(home.network().clone(), home.root()?)].into(),
            };
            let basis = lab::basis(&suite, serving.network(), &certificates);
            let sessions = Arc::new(Mutex::new(Sessions::new(MemoryStore::default(), policy, basis)));
            let cache = Arc::new(Cache(Arc::clone(&sessions)));
            let lab = Lab::new(&suite, serving.network(), certificates, &settings, cache)?;
            nodes.push(Node::new(NodeName::new(name)?, serving.network().clone(), lab, sessions));
        }
        let mut hss = Hss::new();
        hss.certify(serving.network().clone(), home.certify(serving)?);
        let serving = serving.network().clone();
        let mut deployment = Self {
            suite,
            settings,
            nodes,
            homes: [(home.network().clone(), hss)].into(),
            cards: Vec::new(),
            kept: Vec::new(),
            connectors: Vec::new(),
            serving,
            operators: [home, abroad],
        };
        for _ in 0..mobiles {
            deployment.subscribe()?;
        }
        Ok(deployment)
    }

    /// Adds a subscriber of the home network; its place among the mobiles.
    ///
    /// # Errors
    /// [`AkaError`].
    pub fn subscribe(&mut self) -> Result<usize, AkaError> {
        let [home, abroad] = &self.operators;
        let place = self.cards.len();
        let imsi = Imsi::new(&format!("{HOME}{place:010}"))?;
        let leaf = home.subscriber(&format!("subscriber-{place}.example"))?;
        if let Some(hss) = self.homes.get_mut(home.network()) {
            hss.subscribe(imsi.clone(), &leaf.certificate);
        }
        let serving = if abroad.network() == &self.serving { abroad } else { home };
        self.add(Card {
            imsi,
            home: home.network().clone(),
            root: home.root()?,
            leaf: leaf.certificate,
            key: leaf.key,
            authorities: [(self.serving.clone(), serving.certify(home)?)].into(),
        })
    }

    /// Adds a mobile with a card of any issuer.
    ///
    /// # Errors
    /// [`AkaError`].
    pub fn add(&mut self, card: Card) -> Result<usize, AkaError> {
        self.connectors.push(card.connector(&self.suite, &self.serving, &self.settings)?);
        self.cards.push(card);
        self.kept.push((None, None));
        Ok(self.cards.len() - 1)
    }

    /// Home network and the one abroad.
    #[must_use]
    pub fn operators(&self) -> &[Operator; 2] {
        &self.operators
    }

    /// A mobile about to attach, with what it took from its last attach.
    ///
    /// # Errors
    /// [`AkaError::Setup`].
    pub fn mobile(&self, place: usize) -> Result<Mobile<Box<dyn shakedown_trace::Endpoint>>, AkaError> {
        let (temporary, session) = &self.kept[place];
        let endpoint = self.connectors[place].connect(session.as_ref())?;
        let card = &self.cards[place];
        let (imsi, home) = (card.imsi.clone(), card.home.clone());
        Ok(Mobile::new(endpoint, Subscription { imsi, home, temporary: temporary.clone() }))
    }

    /// What a mobile takes from its attach: always the temporary identity, and a session where it made one.
    pub fn keep(&mut self, place: usize, temporary: Temporary, session: Option<Session>) {
        let kept = &mut self.kept[place];
        kept.0 = Some(temporary);
        kept.1 = session.or(kept.1.take());
    }

    /// What a mobile is known by for the moment.
    #[must_use]
    pub fn temporary(&self, place: usize) -> Option<Temporary> {
        self.kept.get(place).and_then(|kept| kept.0.clone())
    }

    /// A mobile forgets its temporary identity, its session, or both.
    pub fn forget(&mut self, place: usize, temporary: bool, session: bool) {
        let kept = &mut self.kept[place];
        kept.0 = kept.0.take().filter(|_| !temporary);
        kept.1 = kept.1.take().filter(|_| !session);
    }

    /// One attach of a mobile at a node.
    ///
    /// # Errors
    /// [`AkaError::Setup`].
    pub fn attach(&mut self, runner: &mut Runner, place: usize, node: usize) -> Result<Measured, AkaError> {
        let mut mobile = self.mobile(place)?;
        let mut access = Access { nodes: &mut self.nodes, serving: node, homes: &mut self.homes };
        let (measured, events) = runner.attach(&mut mobile, &mut access);
        for event in events {
            if let MobileEvent::Attached(temporary) = event {
                let session = mobile.endpoint().session().filter(|_| !measured.resumed);
                self.keep(place, temporary, session);
            }
        }
        Ok(measured)
    }
}

const GAP: Purpose = Purpose(102);
const MOVE: Purpose = Purpose(103);
/// Of Seeded: what TLS, keys and certificates draw.
const CRYPTOGRAPHY: u64 = 104;
const FIRST_USE: u64 = 105;

/// Runs a plan. `step` is told how many attaches are over, and may stop it. The same plan gives the same outcome.
///
/// # Errors
/// [`AkaError`] where nothing can be run; attaches that failed are in the outcome.
pub fn simulate(
    suite: &Suite,
    plan: &Plan,
    step: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Outcome, AkaError> {
    let seeded = |number| {
        Seeded::new(plan.seed, number).map_err(|stack| AkaError::OpenSsl { what: "draw from a seed", stack })
    };
    // What OpenSSL draws when a process first uses it is drawn by an attach that does not count.
    let first = Plan { attaches: 1, mobiles: 1, background_per_s: 0.0, ..plan.clone() };
    seeded(FIRST_USE)?.during(|| run(suite, &first, &mut |_| ControlFlow::Continue(())))?;
    seeded(CRYPTOGRAPHY)?.during(|| run(suite, plan, step))
}

fn run(
    suite: &Suite,
    plan: &Plan,
    step: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Outcome, AkaError> {
    let seconds = |option, given: f64| {
        let wrong =
            AkaError::Option { option, given: given.to_string(), accepted: "0 to 1e9 seconds".into() };
        if (0.0..=1e9).contains(&given) { Ok(given) } else { Err(wrong) }
    };
    let gap_s = seconds("gap", plan.gap_s)?;
    let policy = Policy {
        max_resumptions: plan.max_resumptions,
        max_age: Duration::from_secs_f64(seconds("age of sessions", plan.max_age_s)?),
    };
    let moves = Probability::new(plan.moves).ok_or(AkaError::Option {
        option: "moves",
        given: plan.moves.to_string(),
        accepted: "0 to 1".into(),
    })?;
    let tcp = TcpConfig::default();
    let setting = Setting {
        bearer: Bearer::try_from(&plan.bearer)?,
        hosts: Hosts::of(&plan.bearer, tcp, None, Jiffies::new(tcp.hz, Ns::ZERO)),
        full: Work::of(&plan.full)?,
        resumed: Work::of(&plan.resumed)?,
        preparation: Distribution::try_from(&plan.preparation)?,
        core_round_trip: Ns::from_secs_f64(seconds("core round trip", plan.core_round_trip_s)?),
        patience: Ns::from_secs_f64(seconds("patience", plan.patience_s)?),
        seed: plan.seed,
    };
    let mut deployment = Deployment::new(suite, plan.mobiles.max(1), plan.roaming, policy)?;
    let mut runner = Runner::new(setting, plan.workers, plan.background_per_s);
    let mut gaps = Stream::of(plan.seed, 0, GAP);
    let mut moved = Stream::of(plan.seed, 0, MOVE);
    let mut at = vec![0; plan.mobiles.max(1)];
    let mut attaches = Vec::with_capacity(plan.attaches);
    for number in 0..plan.attaches {
        if step(number).is_break() {
            return Err(AkaError::Interrupted);
        }
        runner.pass(Ns::from_secs_f64(gap_s * gaps.exponential()));
        let place = number % at.len();
        if number >= at.len() && moves.happens(&mut moved) {
            at[place] = 1 - at[place];
        }
        attaches.push(deployment.attach(&mut runner, place, at[place])?);
    }
    let mut not_resumed = BTreeMap::new();
    let mut handed_over = 0;
    for node in &deployment.nodes {
        handed_over += node.tally().handed_over;
        for (decision, times) in &node.tally().not_resumed {
            *not_resumed.entry(*decision).or_default() += times;
        }
    }
    Ok(Outcome {
        attaches,
        not_resumed,
        handed_over,
        background_served: runner.background_served(),
        length_s: runner.now().as_secs_f64(),
    })
}
