//! Mobiles, SGSNs and an HSS on this program's stacks, for runs in virtual time.

use super::credentials::{self, Cache, Card, NodeCertificates, SgsnEnvironment};
use super::{AkaError, Operator, suite_of};
use shakedown_aka::hss::Hss;
use shakedown_aka::mobile::{Mobile, MobileEvent, Subscription};
use shakedown_aka::names::{Imsi, Network, NodeName, Temporary};
use shakedown_aka::run::{Access, Measured, Outcome, Plan, Runner};
use shakedown_aka::sessions::{MemoryStore, Policy, Sessions};
use shakedown_aka::sgsn::Node;
use shakedown_ossl::random::Seeded;
use shakedown_stacks::{Connector, Settings};
use shakedown_trace::{Session, Suite};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

/// The nodes and subscribers of a run.
pub struct Deployment {
    suite: Suite,
    settings: Settings,
    pub nodes: Vec<Node<SgsnEnvironment>>,
    pub homes: HashMap<Network, Hss>,
    pub cards: Vec<Card>,
    /// Temporary identity and session of each mobile from its last attach.
    pub kept: Vec<(Option<Temporary>, Option<Session>)>,
    connectors: Vec<Arc<dyn Connector>>,
    serving: Network,
    operators: [Operator; 2],
}

const HOME: &str = "20201";
const ABROAD: &str = "20801";
const NODES: [&str; 2] = ["sgsn-1", "sgsn-2"];

impl Deployment {
    /// Two SGSNs of one network, with a policy, and N subscribers of the same network or, roaming, of another.
    pub fn new(suite: &Suite, mobiles: usize, roaming: bool, policy: Policy) -> Result<Self, AkaError> {
        let suite = suite_of(suite)?;
        let settings = Settings { instrumented: false, ..Settings::default() };
        let kinds = credentials::kinds(&suite);
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
            let basis = credentials::basis(&suite, serving.network(), &certificates);
            let store = Box::new(MemoryStore::default());
            let sessions = Arc::new(Mutex::new(Sessions::new(store, policy, basis)));
            let cache = Arc::new(Cache(Arc::clone(&sessions)));
            let environment =
                SgsnEnvironment::new(&suite, serving.network(), certificates, &settings, cache)?;
            nodes.push(Node::new(NodeName::new(name)?, serving.network().clone(), environment, sessions));
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

    /// Adds a subscriber of the home network; returns its index.
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
    pub fn add(&mut self, card: Card) -> Result<usize, AkaError> {
        self.connectors.push(card.connector(&self.suite, &self.serving, &self.settings)?);
        self.cards.push(card);
        self.kept.push((None, None));
        Ok(self.cards.len() - 1)
    }

    /// Operators of the home network and of the other network.
    pub fn operators(&self) -> &[Operator; 2] {
        &self.operators
    }

    /// A mobile that is about to attach, with the temporary identity and session of its last attach.
    pub fn mobile(&self, place: usize) -> Result<Mobile<Box<dyn shakedown_trace::Endpoint>>, AkaError> {
        let (temporary, session) = &self.kept[place];
        let endpoint = self.connectors[place].connect(session.as_ref())?;
        let card = &self.cards[place];
        let (imsi, home) = (card.imsi.clone(), card.home.clone());
        Ok(Mobile::new(endpoint, Subscription { imsi, home, temporary: temporary.clone() }))
    }

    /// Keeps the temporary identity of an attach, and the session if the attach created one.
    pub fn keep(&mut self, place: usize, temporary: Temporary, session: Option<Session>) {
        let kept = &mut self.kept[place];
        kept.0 = Some(temporary);
        kept.1 = session.or(kept.1.take());
    }

    fn attach(&mut self, runner: &mut Runner, place: usize, node: usize) -> Result<Measured, AkaError> {
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

/// Numbers of the [`Seeded`] streams for TLS, keys and certificates.
const CRYPTOGRAPHY: u64 = 104;
const FIRST_USE: u64 = 105;

/// Runs a plan; the same plan gives the same outcome. `step` gets the number of ended attaches, and may stop the run.
///
/// # Errors
/// [`AkaError`] if nothing can be run; failed attaches are in the outcome.
pub fn simulate(
    suite: &Suite,
    plan: &Plan,
    step: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Outcome, AkaError> {
    let seeded = |number| {
        Seeded::new(plan.seed, number).map_err(|stack| AkaError::OpenSsl { what: "draw from a seed", stack })
    };
    let policy = plan.policy()?;
    let run = |plan: &Plan, step: &mut dyn FnMut(usize) -> ControlFlow<()>| {
        let mut deployment = Deployment::new(suite, plan.mobiles.max(1), plan.roaming, policy)?;
        let mut outcome =
            plan.run(&mut |runner, place, node| deployment.attach(runner, place, node), step)?;
        deployment.nodes.iter().for_each(|node| outcome.count(node.tally()));
        Ok::<_, AkaError>(outcome)
    };
    // An uncounted attach makes the random draws of OpenSSL's first use in a process.
    let first = Plan { attaches: 1, mobiles: 1, background_per_s: 0.0, ..plan.clone() };
    seeded(FIRST_USE)?.during(|| run(&first, &mut |_| ControlFlow::Continue(())))?;
    seeded(CRYPTOGRAPHY)?.during(|| run(plan, step))
}
