//! TLS handshakes between two connections of libssl in memory, in a library context of choice.

#![allow(dead_code, reason = "each test uses a part of it")]

pub mod record;

use foreign_types::{ForeignType, ForeignTypeRef};
use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::dsa::Dsa;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::ssl::{ErrorCode, Ssl, SslContext, SslContextBuilder, SslStream, SslVerifyMode, SslVersion};
use openssl::x509::{X509, X509Builder, X509NameBuilder};
use shakedown_ossl::{Library, ffi};
use std::io::{self, Read, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// TLS 1.3 with only a pre-shared key.
    Psk13,
    /// TLS 1.3 with X25519; the server has this key.
    Tls13(Key),
    /// TLS 1.3 over X25519MLKEM768, both sides with an ML-DSA-65 key.
    Hybrid,
    /// TLS 1.2, RSA key transport, AES-CBC, both sides with RSA keys.
    Rsa12(u32),
    /// TLS 1.2 over P-256, AES-CBC.
    Ecdhe12(Key),
    /// TLS 1.2 over a finite field, AES-CBC.
    Dhe12(Key),
}

impl Suite {
    /// Whether a private RSA key is used.
    pub fn has_rsa(self) -> bool {
        use Suite::{Dhe12, Ecdhe12, Rsa12, Tls13};
        matches!(self, Rsa12(_) | Tls13(Key::Rsa(_)) | Ecdhe12(Key::Rsa(_)) | Dhe12(Key::Rsa(_)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    P256,
    Rsa(u32),
    Dsa,
    MlDsa65,
}

/// A self-signed certificate and its key, as bytes, so that they can be read into any library context.
pub struct Identity {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Identity {
    pub fn new(key: Key) -> Self {
        let pair = match key {
            Key::P256 => {
                let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).expect("the curve");
                PKey::from_ec_key(EcKey::generate(&group).expect("a key")).expect("a key")
            }
            Key::Rsa(bits) => PKey::from_rsa(Rsa::generate(bits).expect("a key")).expect("a key"),
            Key::Dsa => PKey::from_dsa(Dsa::generate(1024).expect("a key")).expect("a key"),
            Key::MlDsa65 => generate(c"ML-DSA-65"),
        };
        let digest = if key == Key::MlDsa65 {
            // SAFETY: schemes without a separate hash require a null digest.
            unsafe { MessageDigest::from_ptr(std::ptr::null()) }
        } else {
            MessageDigest::sha256()
        };
        let mut name = X509NameBuilder::new().expect("a name");
        name.append_entry_by_text("CN", "example").expect("a name");
        let name = name.build();
        let mut builder = X509Builder::new().expect("a certificate");
        builder.set_version(2).expect("a version");
        let number = BigNum::from_u32(1).expect("a number").to_asn1_integer().expect("a number");
        builder.set_serial_number(&number).expect("a number");
        builder.set_subject_name(&name).expect("a name");
        builder.set_issuer_name(&name).expect("a name");
        builder.set_not_before(&Asn1Time::days_from_now(0).expect("a date")).expect("a date");
        builder.set_not_after(&Asn1Time::days_from_now(2).expect("a date")).expect("a date");
        builder.set_pubkey(&pair).expect("a key");
        builder.sign(&pair, digest).expect("a signature");
        Self {
            certificate: builder.build().to_der().expect("bytes"),
            key: pair.private_key_to_pkcs8().expect("bytes"),
        }
    }
}

fn generate(algorithm: &'static std::ffi::CStr) -> PKey<Private> {
    // SAFETY: the context is freed once, the key is owned by the result; results are checked.
    unsafe {
        let context =
            ffi::EVP_PKEY_CTX_new_from_name(std::ptr::null_mut(), algorithm.as_ptr(), std::ptr::null());
        assert!(!context.is_null());
        let mut key = std::ptr::null_mut();
        assert_eq!(openssl_sys::EVP_PKEY_keygen_init(context), 1);
        assert_eq!(openssl_sys::EVP_PKEY_keygen(context, &raw mut key), 1);
        openssl_sys::EVP_PKEY_CTX_free(context);
        PKey::from_ptr(key)
    }
}

/// The TLS contexts of both sides.
pub struct Contexts {
    pub client: SslContext,
    pub server: SslContext,
}

impl Contexts {
    pub fn new(library: Library, suite: Suite) -> Self {
        Self::with(library, suite, &identity(suite))
    }

    pub fn with(library: Library, suite: Suite, identity: &Identity) -> Self {
        let side = |serves: bool| build(library, suite, identity, serves);
        Self { client: side(false), server: side(true) }
    }

    /// A new connection of each side.
    pub fn pair(&self) -> [Connection; 2] {
        [Connection::new(&self.client, false), Connection::new(&self.server, true)]
    }

    /// Performs one handshake.
    pub fn handshake(&self) -> Transcript {
        let [mut client, mut server] = self.pair();
        let mut transcript = Transcript::default();
        while transcript.step(&mut client, &mut server) {}
        assert!(client.is_established() && server.is_established());
        transcript
    }
}

/// The identity that both sides use.
pub fn identity(suite: Suite) -> Identity {
    Identity::new(match suite {
        Suite::Psk13 => Key::P256,
        Suite::Tls13(key) | Suite::Ecdhe12(key) | Suite::Dhe12(key) => key,
        Suite::Hybrid => Key::MlDsa65,
        Suite::Rsa12(bits) => Key::Rsa(bits),
    })
}

fn build(library: Library, suite: Suite, identity: &Identity, serves: bool) -> SslContext {
    // SAFETY: the library context is never freed; the builder owns the TLS context.
    let mut builder = unsafe {
        let method = openssl_sys::TLS_method();
        let context = ffi::SSL_CTX_new_ex(library.as_ptr(), std::ptr::null(), method);
        assert!(!context.is_null());
        ffi::SSL_CTX_set_security_level(context, 0);
        const SET_DH_AUTO: libc::c_int = 118;
        openssl_sys::SSL_CTX_ctrl(context, SET_DH_AUTO, 1, std::ptr::null_mut());
        SslContextBuilder::from_ptr(context)
    };
    let modern = matches!(suite, Suite::Psk13 | Suite::Tls13(_) | Suite::Hybrid);
    let version = if modern { SslVersion::TLS1_3 } else { SslVersion::TLS1_2 };
    builder.set_min_proto_version(Some(version)).expect("a version");
    builder.set_max_proto_version(Some(version)).expect("a version");
    builder.set_num_tickets(0).expect("no tickets");
    builder.set_options(openssl::ssl::SslOptions::NO_TICKET);
    builder
        .set_groups_list(match suite {
            Suite::Hybrid => "X25519MLKEM768",
            Suite::Ecdhe12(_) => "P-256",
            _ => "X25519",
        })
        .expect("a group");
    match suite {
        Suite::Rsa12(_) => builder.set_cipher_list("AES128-SHA@SECLEVEL=0").expect("a cipher"),
        Suite::Dhe12(_) => builder.set_cipher_list("DHE+AES128+SHA1@SECLEVEL=0").expect("a cipher"),
        Suite::Ecdhe12(_) => builder.set_cipher_list("ECDHE+AES128+SHA1@SECLEVEL=0").expect("a cipher"),
        _ => builder.set_ciphersuites("TLS_AES_128_GCM_SHA256").expect("a cipher"),
    }
    if suite == Suite::Psk13 {
        // SSL_OP_ALLOW_NO_DHE_KEX and SSL_OP_PREFER_NO_DHE_KEX.
        builder.set_options(openssl::ssl::SslOptions::from_bits_retain(1 << 10 | 1 << 35));
        preshared(&mut builder, serves);
        return builder.build();
    }
    let certificate = certificate(library, &identity.certificate);
    let mutual = matches!(suite, Suite::Rsa12(_) | Suite::Hybrid);
    if serves || mutual {
        builder.set_certificate(&certificate).expect("a certificate");
        builder.set_private_key(&private_key(library, &identity.key)).expect("a key");
    }
    builder.cert_store_mut().add_cert(certificate).expect("a root");
    if !serves || mutual {
        builder.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
    }
    builder.build()
}

fn preshared(builder: &mut SslContextBuilder, serves: bool) {
    let secret = |out: &mut [u8]| {
        out[..32].copy_from_slice(&[7; 32]);
        32
    };
    if serves {
        builder.set_psk_server_callback(move |_, _, out| Ok(secret(out)));
    } else {
        builder.set_psk_client_callback(move |_, _, name, out| {
            name[..3].copy_from_slice(b"us\0");
            Ok(secret(out))
        });
    }
}

fn certificate(library: Library, der: &[u8]) -> X509 {
    let mut data = der.as_ptr();
    // SAFETY: the library context is never freed; the data is readable for its length; null is checked.
    unsafe {
        let mut empty = ffi::X509_new_ex(library.as_ptr(), std::ptr::null());
        let length = i64::try_from(der.len()).expect("a length") as _;
        assert!(!openssl_sys::d2i_X509(&raw mut empty, &raw mut data, length).is_null());
        X509::from_ptr(empty)
    }
}

fn private_key(library: Library, der: &[u8]) -> PKey<Private> {
    let mut data = der.as_ptr();
    // SAFETY: as for certificates.
    unsafe {
        let length = i64::try_from(der.len()).expect("a length") as _;
        let key = ffi::d2i_AutoPrivateKey_ex(
            std::ptr::null_mut(),
            &raw mut data,
            length,
            library.as_ptr(),
            std::ptr::null(),
        );
        assert!(!key.is_null());
        PKey::from_ptr(key)
    }
}

/// The input and output of a connection.
#[derive(Default)]
struct Memory {
    input: Vec<u8>,
    taken: usize,
    output: Vec<u8>,
}

impl Read for Memory {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.input[self.taken..];
        if rest.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.taken += length;
        Ok(length)
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub struct Connection {
    stream: SslStream<Memory>,
}

impl Connection {
    fn new(context: &SslContext, serves: bool) -> Self {
        let mut ssl = Ssl::new(context).expect("a connection");
        if serves {
            ssl.set_accept_state();
        } else {
            ssl.set_connect_state();
        }
        Self { stream: SslStream::new(ssl, Memory::default()).expect("a stream") }
    }

    pub fn is_established(&self) -> bool {
        self.stream.ssl().is_init_finished()
    }

    /// Processes bytes of the peer; returns the bytes for the peer.
    pub fn step(&mut self, input: &[u8]) -> Vec<u8> {
        self.stream.get_mut().input.extend_from_slice(input);
        if let Err(error) = self.stream.do_handshake() {
            assert_eq!(error.code(), ErrorCode::WANT_READ, "{error}");
        }
        std::mem::take(&mut self.stream.get_mut().output)
    }

    /// Encrypts data; returns the bytes for the peer.
    pub fn write(&mut self, data: &[u8]) -> Vec<u8> {
        assert_eq!(self.stream.ssl_write(data).expect("room"), data.len());
        std::mem::take(&mut self.stream.get_mut().output)
    }

    /// Decrypts bytes of the peer.
    pub fn read(&mut self, input: &[u8]) -> Vec<u8> {
        self.stream.get_mut().input.extend_from_slice(input);
        let mut data = vec![0; input.len()];
        let length = self.stream.ssl_read(&mut data).expect("data");
        data.truncate(length);
        data
    }

    /// For calls that the `openssl` crate lacks.
    pub fn as_ptr(&self) -> *mut openssl_sys::SSL {
        self.stream.ssl().as_ptr()
    }
}

/// The bytes that both sides sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    pub client_to_server: Vec<u8>,
    pub server_to_client: Vec<u8>,
    /// Number of the server's bytes that were passed to the client.
    delivered: usize,
}

impl Transcript {
    /// A step of the client, then one of the server; false if neither sent anything.
    pub fn step(&mut self, client: &mut Connection, server: &mut Connection) -> bool {
        let sent = client.step(self.for_client());
        let answer = server.step(&sent);
        self.add(&sent, &answer)
    }

    /// The server's bytes that were not yet passed to the client.
    pub fn for_client(&mut self) -> &[u8] {
        let start = std::mem::replace(&mut self.delivered, self.server_to_client.len());
        &self.server_to_client[start..]
    }

    /// Adds the bytes of a round; false if there are none.
    pub fn add(&mut self, sent: &[u8], answer: &[u8]) -> bool {
        self.client_to_server.extend_from_slice(sent);
        self.server_to_client.extend_from_slice(answer);
        !(sent.is_empty() && answer.is_empty())
    }
}
