//! The two `SSL_CTX` of a suite.

use super::hello::MAX_CERTIFICATES_BYTES;
use super::security::{self, Policy};
use super::{boundaries, lifetime, names, psk};
use crate::primitives::evp::Evp;
use crate::stack::{Exposure, SessionCache, Setup, SetupError, refused};
use foreign_types::ForeignType;
use openssl::error::ErrorStack;
use openssl::pkey::PKey;
use openssl::ssl::{
    SslContextBuilder, SslMode, SslOptions, SslSession, SslSessionCacheMode, SslVerifyMode, SslVersion,
};
use openssl::x509::X509;
use openssl_sys as sys;
use shakedown_ossl::{Library, LibraryError, ffi};
use shakedown_pki::Identity;
use shakedown_trace::suite::{Authentication, Group, GroupKind, KeyExchange, KeyType, Mode, Protocol};
use shakedown_trace::{Carrier, Side, Suite};
use std::ffi::{CStr, CString};
use std::sync::{Arc, PoisonError};

/// The library context, timed or bare.
pub fn library(timed: bool) -> Result<Library, LibraryError> {
    if timed { Library::timed() } else { Library::bare() }
}

/// `SSL_OP_ALLOW_NO_DHE_KEX` and `SSL_OP_PREFER_NO_DHE_KEX` (ssl.h).
const ALLOW_NO_DHE_KEX: u64 = 1 << 10;
const PREFER_NO_DHE_KEX: u64 = 1 << 35;
/// `SSL_MODE_NO_AUTO_CHAIN`: send the chain as given.
const NO_AUTO_CHAIN: libc::c_long = 0x8;

/// Begins the context of a suite; other suites can be added before it is built.
pub fn begin(policy: Policy, side: Side, setup: &Setup) -> Result<SslContextBuilder, SetupError> {
    let suite = &setup.suite;
    let library = library(setup.instrumented)?;
    let mut builder = builder(library, policy, setup)?;
    authenticate(side, library, setup, &mut builder)?;
    exchange(side, library, suite, &mut builder)?;
    if side == Side::Server {
        if setup.exposure == Exposure::Network {
            limit_certificates(&builder);
        }
        builder.set_session_id_context(b"shakedown").map_err(refused("name the session context"))?;
        // In memory, certificates are validated at a fixed time, and every run ends before they expire.
        let bounded = setup.exposure == Exposure::Network;
        if bounded {
            lifetime::bound_tickets(&builder);
        }
        if let Some(cache) = &setup.session_cache {
            if suite.mode == Mode::Ticket {
                setup.without_session_cache(super::NAME)?;
            }
            // TLS 1.3 resumes only with tickets; with this option they contain only the ID of a session in the cache.
            builder.set_options(SslOptions::NO_TICKET);
            keep_sessions_in(cache, bounded, &mut builder);
        } else if bounded && suite.is_resumption() {
            // Sessions in libssl's own cache expire by their timeout.
            builder.set_new_session_callback(|ssl, session| {
                lifetime::bound(ssl, &session);
            });
        }
    } else if let Some(log) = &setup.key_log {
        let lines = Arc::clone(log);
        builder.set_keylog_callback(move |_, line| {
            lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
        });
    }
    Ok(builder)
}

fn limit_certificates(builder: &SslContextBuilder) {
    const SET_MAX_CERT_LIST: libc::c_int = 51;
    let bytes = libc::c_long::try_from(MAX_CERTIFICATES_BYTES).unwrap_or(libc::c_long::MAX);
    // SAFETY: the context is live.
    unsafe { sys::SSL_CTX_ctrl(builder.as_ptr(), SET_MAX_CERT_LIST, bytes, std::ptr::null_mut()) };
}

/// Adds a server's certificate and keys of another suite to a context that negotiates both. `certified`: its
/// certificate is a different one.
pub fn extend(builder: &mut SslContextBuilder, setup: &Setup, certified: bool) -> Result<(), SetupError> {
    let library = library(setup.instrumented)?;
    if certified {
        authenticate(Side::Server, library, setup, builder)?;
    }
    let suite = &setup.suite;
    // Groups of other kinds are listed for all suites at once.
    if let (Some(group), Some(GroupKind::FiniteField)) = (suite.group, suite.key_exchange.group_kind()) {
        use_dh_parameters(library, group, builder)?;
    }
    pre_shared_key(Side::Server, suite, builder);
    Ok(())
}

/// Configures the key exchange.
fn exchange(
    side: Side,
    library: Library,
    suite: &Suite,
    builder: &mut SslContextBuilder,
) -> Result<(), SetupError> {
    if let Some(group) = suite.group.or(unused_group(suite)) {
        exchange_in(side, library, suite, group, builder)?;
    }
    pre_shared_key(side, suite, builder);
    Ok(())
}

/// With a bare pre-shared key libssl still sends a key share, which is not used.
fn unused_group(suite: &Suite) -> Option<Group> {
    (suite.protocol == Protocol::Tls13).then_some(Group::X25519)
}

/// Installs the pre-shared key, if the suite has one.
fn pre_shared_key(side: Side, suite: &Suite, builder: &mut SslContextBuilder) {
    match suite.key_exchange {
        KeyExchange::Psk | KeyExchange::PskDhe if suite.protocol == Protocol::Tls13 => {
            psk::install_tls13(side, suite, builder);
        }
        KeyExchange::Psk | KeyExchange::DhePsk | KeyExchange::RsaPsk | KeyExchange::EcdhePsk => {
            psk::install(side, builder);
        }
        _ => {}
    }
}

/// A client's context with libssl's own protocols, groups and security level.
pub fn build_default_client(instrumented: bool) -> Result<SslContextBuilder, SetupError> {
    let mut builder = default_context(library(instrumented)?)?;
    builder.set_verify(SslVerifyMode::NONE);
    watch(&builder, instrumented);
    Ok(builder)
}

/// Installs the callbacks that report to the recorder, or only those for alerts.
fn watch(builder: &SslContextBuilder, instrumented: bool) {
    // SAFETY: the context is live.
    unsafe {
        if instrumented {
            boundaries::install(builder.as_ptr())
        } else {
            boundaries::install_alerts(builder.as_ptr())
        }
    };
}

/// Configures which side presents a certificate and which root each side trusts.
fn authenticate(
    side: Side,
    library: Library,
    setup: &Setup,
    builder: &mut SslContextBuilder,
) -> Result<(), SetupError> {
    let suite = &setup.suite;
    // If authentication is `requested`, the client responds with an empty list of certificates.
    let presents = side == Side::Server || suite.authentication == Some(Authentication::Mutual);
    if let Some(identity) = setup.x509(side, super::NAME)?.filter(|_| presents) {
        present(library, builder, identity)?;
    }
    let Some(peer) = setup.x509(side.peer(), super::NAME)? else {
        builder.set_verify(SslVerifyMode::NONE);
        return Ok(());
    };
    let laboratory = setup.exposure == Exposure::Laboratory;
    let root = trust(library, builder, &peer.root, laboratory.then_some(setup.now_unix_s))?;
    let mut mode = SslVerifyMode::PEER;
    if side == Side::Server {
        builder.add_client_ca(&root).map_err(refused("name the clients' root"))?;
        if suite.authentication == Some(Authentication::Mutual) {
            mode |= SslVerifyMode::FAIL_IF_NO_PEER_CERT;
        }
    }
    builder.set_verify(mode);
    Ok(())
}

/// The configuration that both sides share.
fn builder(library: Library, policy: Policy, setup: &Setup) -> Result<SslContextBuilder, SetupError> {
    let suite = &setup.suite;
    let mut builder = empty(library, policy)?;
    let version = match suite.protocol {
        Protocol::Ssl3 => SslVersion::SSL3,
        Protocol::Tls10 => SslVersion::TLS1,
        Protocol::Tls11 => SslVersion::TLS1_1,
        Protocol::Tls12 => SslVersion::TLS1_2,
        _ => SslVersion::TLS1_3,
    };
    builder.set_min_proto_version(Some(version)).map_err(refused("set the protocol"))?;
    builder.set_max_proto_version(Some(version)).map_err(refused("set the protocol"))?;
    let cipher = names::cipher_suite(suite);
    if suite.protocol == Protocol::Tls13 {
        builder.set_ciphersuites(&cipher).map_err(refused("set the cipher suite"))?;
    } else {
        builder.set_cipher_list(&cipher).map_err(refused("set the cipher suite"))?;
    }
    // An RSA-512 signature has space for a SHA-256 DigestInfo (51 + 11 of 64 bytes), but not for a longer hash.
    let small = |key: &KeyType| matches!(key, KeyType::Rsa { bits: ..768, .. });
    if suite.protocol == Protocol::Tls12 && suite.keys.iter().any(small) {
        builder
            .set_sigalgs_list("RSA+SHA256:ECDSA+SHA256:DSA+SHA256")
            .map_err(refused("set the signature schemes"))?;
    }
    if setup.carrier == Carrier::Eap {
        builder.clear_options(SslOptions::ENABLE_MIDDLEBOX_COMPAT);
    }
    tickets_and_sessions(&mut builder, setup)?;
    watch(&builder, setup.instrumented);
    Ok(builder)
}

/// A context of a library with libssl's defaults.
fn default_context(library: Library) -> Result<SslContextBuilder, SetupError> {
    // SAFETY: the library context is never freed; a null result is checked; the builder takes ownership of the context.
    let mut builder = unsafe {
        let context = ffi::SSL_CTX_new_ex(library.as_ptr(), std::ptr::null(), sys::TLS_method());
        if context.is_null() {
            return Err(SetupError::OpenSsl { what: "make a TLS context", stack: ErrorStack::get() });
        }
        SslContextBuilder::from_ptr(context)
    };
    builder.set_mode(SslMode::RELEASE_BUFFERS);
    Ok(builder)
}

/// A context of a library with a security policy and without further configuration.
pub fn empty(library: Library, policy: Policy) -> Result<SslContextBuilder, SetupError> {
    let mut builder = default_context(library)?;
    // SAFETY: the context is live.
    unsafe {
        security::enforce(builder.as_ptr(), policy);
        sys::SSL_CTX_ctrl(builder.as_ptr(), sys::SSL_CTRL_MODE, NO_AUTO_CHAIN, std::ptr::null_mut());
    }
    builder.set_options(SslOptions::NO_COMPRESSION);
    // A default may disable SSL 3.0.
    builder.clear_options(SslOptions::NO_SSLV3);
    Ok(builder)
}

/// Full handshakes issue tickets only if requested; sessions are stored if the suite resumes one.
fn tickets_and_sessions(builder: &mut SslContextBuilder, setup: &Setup) -> Result<(), SetupError> {
    let suite = &setup.suite;
    let mut options = SslOptions::empty();
    let tls13 = suite.protocol == Protocol::Tls13;
    let wants_tickets = suite.mode == Mode::Ticket || (suite.mode == Mode::Full && setup.tickets > 0);
    if !tls13 && !wants_tickets {
        options |= SslOptions::NO_TICKET;
    }
    // The handshake before a resumption needs one ticket; the resumption issues `setup.tickets` (see `accept`).
    let tickets = if suite.mode == Mode::Resumed { setup.tickets.max(1) } else { setup.tickets };
    builder.set_num_tickets(tickets as usize).map_err(refused("set the number of tickets"))?;
    if suite.key_exchange == KeyExchange::Psk && tls13 {
        options |= SslOptions::from_bits_retain(ALLOW_NO_DHE_KEX as _)
            | SslOptions::from_bits_retain(PREFER_NO_DHE_KEX as _);
    }
    builder.set_options(options);
    // A full handshake gets a session ID, as from any server that could resume it, but the session is not stored.
    let mut mode = SslSessionCacheMode::SERVER;
    if !suite.is_resumption() {
        mode |= SslSessionCacheMode::NO_INTERNAL_STORE;
    }
    builder.set_session_cache_mode(mode);
    if setup.exposure == Exposure::Network {
        builder.set_options(SslOptions::NO_RENEGOTIATION);
    }
    // Longer than any run, because sessions age by the real clock. Servers on a network have stricter limits.
    const TIMEOUT_S: libc::c_long = 7 * 24 * 3600;
    // SAFETY: the context is live.
    unsafe { ffi::SSL_CTX_set_timeout(builder.as_ptr(), TIMEOUT_S) };
    Ok(())
}

/// Makes a server store its sessions only in an external cache; `bounded`: they expire with the peer's certificates.
fn keep_sessions_in(cache: &Arc<dyn SessionCache>, bounded: bool, builder: &mut SslContextBuilder) {
    builder.set_session_cache_mode(SslSessionCacheMode::SERVER | SslSessionCacheMode::NO_INTERNAL);
    let made = Arc::clone(cache);
    builder.set_new_session_callback(move |ssl, session| {
        let made_s = match bounded {
            true => lifetime::bound_kept(ssl, &session),
            false => Some(session.time()),
        };
        // A session without a limit or an encoding is not resumed.
        if let (Some(made_s), Ok(der)) = (made_s, session.to_der()) {
            made.put(session.id(), der, made_s);
        }
    });
    let kept = Arc::clone(cache);
    // SAFETY: a returned session must come from a context with the same settings: the cache contains sessions of
    // servers of this stack, and libssl checks protocol, cipher and session context itself.
    unsafe {
        builder.set_get_session_callback(move |ssl, id| {
            let session = kept.get(id).and_then(|der| SslSession::from_der(&der).ok())?;
            (!bounded || lifetime::is_kept_resumable(ssl, &session)).then_some(session)
        });
    }
}

fn present(library: Library, builder: &mut SslContextBuilder, identity: &Identity) -> Result<(), SetupError> {
    let refused = refused("take a certificate");
    for (place, der) in identity.chain.iter().enumerate() {
        let certificate = certificate(library, der).map_err(&refused)?;
        if place == 0 {
            builder.set_certificate(&certificate).map_err(&refused)?;
        } else {
            chain_to_latest(builder, &certificate).map_err(&refused)?;
        }
    }
    let key = Evp::new(library).private_key(&identity.key)?;
    builder.set_private_key(&key).map_err(&refused)
}

/// Adds an issuer to the chain of the certificate that was set last; there may be several, with different keys.
fn chain_to_latest(builder: &mut SslContextBuilder, certificate: &X509) -> Result<(), ErrorStack> {
    const CHAIN_CERT: libc::c_int = 89;
    const COUNT_REFERENCE: libc::c_long = 1;
    // SAFETY: context and certificate are live; the context takes its own reference.
    let added = unsafe {
        use foreign_types::ForeignTypeRef;
        let certificate: &openssl::x509::X509Ref = certificate;
        sys::SSL_CTX_ctrl(builder.as_ptr(), CHAIN_CERT, COUNT_REFERENCE, certificate.as_ptr().cast())
    };
    if added == 1 { Ok(()) } else { Err(ErrorStack::get()) }
}

/// Makes a side trust a root: a generated one at a given time, even if it is weak; others now.
pub fn trust(
    library: Library,
    builder: &mut SslContextBuilder,
    root: &[u8],
    unix_s: Option<i64>,
) -> Result<X509, SetupError> {
    let refused = refused("trust a root");
    let root = certificate(library, root).map_err(&refused)?;
    builder.cert_store_mut().add_cert(root.clone()).map_err(&refused)?;
    if let Some(unix_s) = unix_s {
        builder.verify_param_mut().set_time(unix_s as _);
        builder.verify_param_mut().set_auth_level(0);
    }
    Ok(root)
}

/// A certificate in the library context, so that its verification is timed.
fn certificate(library: Library, der: &[u8]) -> Result<X509, ErrorStack> {
    let mut data = der.as_ptr();
    let length = libc::c_long::try_from(der.len()).unwrap_or(libc::c_long::MAX);
    // SAFETY: the library context is never freed; the data is readable for its length; null is checked.
    unsafe {
        let mut empty = ffi::X509_new_ex(library.as_ptr(), std::ptr::null());
        if empty.is_null() || sys::d2i_X509(&raw mut empty, &raw mut data, length).is_null() {
            return Err(ErrorStack::get());
        }
        Ok(X509::from_ptr(empty))
    }
}

/// Sets the group of the exchange, and for a client also the curves that certificates need.
fn exchange_in(
    side: Side,
    library: Library,
    suite: &Suite,
    group: Group,
    builder: &mut SslContextBuilder,
) -> Result<(), SetupError> {
    if suite.key_exchange.group_kind() == Some(GroupKind::FiniteField) {
        // The server sends its parameters; the client accepts them.
        return if side == Side::Server { use_dh_parameters(library, group, builder) } else { Ok(()) };
    }
    let mut list = vec![names::group(group)];
    if side == Side::Client {
        list.extend(certificate_groups(suite).filter(|name| *name != list[0]).collect::<Vec<_>>());
    }
    builder.set_groups_list(&list.join(":")).map_err(refused("set the group"))
}

/// The group of a suite's key exchange, if libssl's list of groups contains it.
pub fn group(suite: &Suite) -> Option<String> {
    if suite.key_exchange.group_kind() == Some(GroupKind::FiniteField) {
        return None;
    }
    suite.group.or(unused_group(suite)).map(names::group)
}

/// The curves that certificates need in the list of groups, which up to TLS 1.2 covers both (RFC 8422 section 5.1.1).
fn certificate_groups(suite: &Suite) -> impl Iterator<Item = String> + '_ {
    let keys = suite.keys.iter().filter(|_| suite.protocol != Protocol::Tls13);
    keys.filter_map(|key| match key {
        KeyType::Ec(curve) => Some(curve.openssl_name().to_owned()),
        _ => None,
    })
}

/// A server's list of groups after its ServerHello, if its clients present certificates on other curves. libssl
/// performs the key exchange on any listed group, and accepts certificates only on listed groups.
pub fn groups_of_clients(setups: &[Setup]) -> Option<Arc<CStr>> {
    let exchange: Vec<String> = setups.iter().filter_map(|setup| group(&setup.suite)).collect();
    let verifies = |setup: &&Setup| setup.suite.authentication == Some(Authentication::Mutual);
    let certificates = setups.iter().filter(verifies).flat_map(|setup| certificate_groups(&setup.suite));
    let others: Vec<String> = certificates.filter(|name| !exchange.contains(name)).collect();
    if others.is_empty() || exchange.is_empty() {
        return None;
    }
    CString::new(listed(exchange.into_iter().chain(others))?).ok().map(Into::into)
}

/// A list of names in libssl's format, without duplicates; `None` if it is empty.
pub fn listed(names: impl Iterator<Item = String>) -> Option<String> {
    let mut list: Vec<String> = Vec::new();
    for name in names {
        if !list.contains(&name) {
            list.push(name);
        }
    }
    (!list.is_empty()).then(|| list.join(":"))
}

fn use_dh_parameters(
    library: Library,
    group: Group,
    builder: &mut SslContextBuilder,
) -> Result<(), SetupError> {
    let evp = Evp::new(library);
    if let Group::Dh(bits) = group
        && let Some((prime, generator)) = shakedown_pki::dh::group(bits)
    {
        return take_dh_parameters(evp.finite_field(prime, generator, None)?, builder);
    }
    let name = CString::new(names::group(group)).unwrap_or_default();
    take_dh_parameters(evp.parameters_in(c"DH", &name)?, builder)
}

fn take_dh_parameters<T>(key: PKey<T>, builder: &mut SslContextBuilder) -> Result<(), SetupError> {
    // SAFETY: context and parameters are live; the context takes ownership, so they are not freed here.
    let taken = unsafe { sys::SSL_CTX_set0_tmp_dh_pkey(builder.as_ptr(), key.as_ptr()) };
    if taken != 1 {
        return Err(SetupError::OpenSsl { what: "take DH parameters", stack: ErrorStack::get() });
    }
    std::mem::forget(key);
    Ok(())
}
